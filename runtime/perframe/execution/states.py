"""The states of a worker: outputs of a run that the next run reads as inputs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perframe.errors import InputError
from perframe.execution.growing import Capacity, GrowingState, Turns, capacities
from perframe.execution.inputs import checked_input
from perframe.execution.machine import Machine, Values, as_output
from perframe.execution.planned_part import PlannedPart
from perframe.execution.state import State
from perframe.ir import Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.passes.layout.lay_out_states import state_layouts
from perframe.plan.plan import Target
from perframe.tensor import Array, Fence, Tensor
from perframe.tensor.memory import sum_unseen

log = logging.getLogger("perframe")


class States:
    """All states of a worker. `pairs` maps outputs to inputs. Raises InputError for a pair that cannot work.

    `capacity` limits the rows of states that grow: of all, or of each input.
    """

    def __init__(
        self, model: Model, pairs: Mapping[str, str], machine: Machine, cast: bool, capacity: Capacity = None
    ) -> None:
        self._model, self._backend, self._cast, self._turns = model, machine.backend, cast, Turns(machine)
        if not isinstance(pairs, Mapping):
            raise InputError(f"carry is a dict from outputs to inputs, and got {type(pairs).__name__}")
        sources = list(pairs.values())
        twice = [name for name in sources if sources.count(name) > 1]
        if twice:
            raise InputError(f"{model.name}: carry gives the input {twice[0]!r} two outputs")
        inputs = {output: _input_for(model, output, name) for output, name in pairs.items()}
        made = {value.name: value.spec.shape for value in model.outputs}
        self.layouts = state_layouts(model, pairs)  # of states whose dims are not in the order of the file
        layouts = {layout.output: layout for layout in self.layouts}
        rows = capacities(model.name, [layout.source for layout in self.layouts if layout.grows], capacity)
        self._states = [
            GrowingState(layout, given, made[output], self._backend, rows[given.name])
            if (layout := layouts.get(output)) is not None and layout.grows
            else State(output, given, made[output], self._backend, layout)
            for output, given in inputs.items()
        ]
        self._given_dims = _given_dims(model, self.sources)
        names = {dim for _, _, dim in self._given_dims}
        self._checked = [
            (state, [(axis, dim) for axis, dim in state.named if dim in names]) for state in self._states
        ]  # with the dims that other inputs give
        self._writers: list[list[Fence]] = []  # for each run that may yet fail, the jobs that write its states

    @property
    def targets(self) -> dict[str, Target]:
        """The states by their outputs."""
        return {state.output: state for state in self._states}

    @property
    def sources(self) -> list[str]:
        """The inputs that are states."""
        return [state.source for state in self._states]

    def add(self, values: Values) -> None:
        """Add the states to the inputs of a run. Raises InputError where they do not fit together."""
        self._settle()
        dims = {dim: values[name].shape[axis] for name, axis, dim in self._given_dims}
        for state, checked in self._checked:
            value = values[state.source] = state.values[-1]
            if value is None:
                values[state.source] = self._zeros(state, dims)
                continue
            for axis, dim in checked:
                if dims[dim] != value.shape[axis]:
                    raise InputError(
                        f"the state {state.source!r} is {state.in_file(value.shape)}, and {dim!r} is {dims[dim]} in "
                        "this run's inputs: call reset() to begin again"
                    )

    def end(self, values: Values) -> None:
        """Make the outputs of a run the states, all of them or none. Raises InputError if an input cannot take one."""
        if not self._states:
            return
        made = [values[state.output] for state in self._states]
        for index, (state, value) in enumerate(zip(self._states, made, strict=True)):
            if type(value) is not Tensor:
                made[index] = value = as_output(state.output, value)
            state.check(value)
        writers = {state.end(value, self._backend) for state, value in zip(self._states, made, strict=True)}
        self._writers.append([writer for writer in writers if writer is not None])

    def _settle(self) -> None:
        """Return to the last good values if a run has failed since."""
        while self._writers:
            writers = self._writers[0]
            if not all([writer.done for writer in writers]):
                return
            error = next(filter(None, map(_error_of, writers)), None)
            if error is None:
                del self._writers[0]
                for state in self._states:
                    del state.values[0]
                continue
            log.warning("a run of %s failed, and its states are as before it: %s", self._model.name, error)
            self._writers = []
            for state in self._states:
                state.go_back()

    def reset(self, given: Any) -> None:
        """Begin with these values, and with zeros where none is given. A single state may be given without a dict."""
        if given is not None and not isinstance(given, Mapping):
            if not self._states:
                raise InputError(
                    f"{self._model.name} has no states: pf.Worker(model, carry={{output: input}}) makes some"
                )
            if len(self._states) != 1:
                raise InputError(
                    f"{self._model.name} has {len(self._states)} states: reset({{name: array}}) names them"
                )
            given = {self._states[0].source: given}
        for name in given or {}:
            self._state(name)
        values = [
            self._laid_out(state, checked_input(self._model.name, state.given, given[state.source], self._cast))
            if given and state.source in given
            else None
            for state in self._states
        ]
        for state, value in zip(self._states, values, strict=True):
            state.reset(value)
        self._writers = []

    def take_over(self, other: States) -> tuple[str, ...]:
        """Begin with copies of the states of another model, and return the names of those that do not fit, which begin
        with zeros.
        """
        given, left = dict[str, Any](), list[str]()
        other._settle()
        for state in other._states:
            if state.value is None:
                continue
            try:
                mine = self._state(state.source)
                checked_input(self._model.name, mine.given, value := other.value(state.source), self._cast)
            except InputError as error:
                log.warning("a state begins again with zeros, since the new model does not take it: %s", error)
                left.append(state.source)
            else:
                given[state.source] = value
        self.reset(given)
        return tuple(left)

    def value(self, name: str | None) -> Tensor:
        """Return the value of a state as a tensor. Raises InputError if its shape is not known yet."""
        state = self._state(name)
        self._settle()
        value = state.value
        if value is None:
            value = state.zeros({})
        if value is None:
            raise InputError(
                f"{self._model.name}: the state {state.given} has no value before the first run, which tells its "
                f"sizes: schedule a run, or begin with worker.reset({{{state.source!r}: array}})"
            )
        if not isinstance(value, Tensor):
            value = Tensor(value)
            value.name = state.source
        result: Tensor = self.in_file_order(state.output, value, state.source)
        return result

    def in_file_order(self, output: str, value: Any, name: str = "") -> Any:
        """Return the value of an output, or of its state, with dims as in the file. Never waits."""
        layout = next((layout for layout in self.layouts if layout.output == output), None)
        return value if layout is None else self._turns.turned(value, layout.inverse, name or output)

    def _state(self, name: str | None) -> State:
        for state in self._states:
            if name in (None, state.source):
                return state
        listed = ", ".join(map(repr, self.sources))
        raise InputError(
            f"{self._model.name} has no state {name!r}; its states are {listed}"
            if listed
            else f"{self._model.name} has no state: make the worker with carry={{output: input}}"
        )

    def _laid_out(self, state: State, value: Any) -> Any:
        layout = state.layout
        if layout is None:
            return self._own(value)
        if isinstance(value, Tensor):
            return self._own(self._turns.turned(value, layout.perm, state.source))
        return value.transpose(layout.perm).copy()

    def _own(self, value: Any) -> Any:
        """Copy a value that the caller may change."""
        if not isinstance(value, Tensor):
            return value.copy()
        if not (value.is_pinned and self._backend.owns(value.data_on_backend)):
            return value.download_to_array()
        storage = self._backend.alloc(value.shape, value.dtype)
        self._backend.copy(value.data_on_backend, storage, value.shape, value.dtype)
        return Tensor.over(storage, value.shape, value.dtype, value.name)

    def _zeros(self, state: State, dims: Mapping[str, int]) -> Array:
        found = state.zeros(dims)
        if found is None:
            raise InputError(
                f"{self._model.name}: the carried input {state.given} has open dims that no other input fixes: begin "
                f"with worker.reset({{{state.source!r}: array}})"
            )
        return found

    def held(self, seen: set[int]) -> int:
        """The bytes held for the states, apart from the objects whose ids are in `seen`."""
        storages = [storage for state in self._states for storage in state.storages]
        return sum_unseen(((id(storage), storage.held_bytes) for storage in storages), seen)

    def planned_parts(self) -> Iterator[PlannedPart]:
        """Yield the parts that transpose states."""
        return self._turns.planned_parts()

    def release(self) -> None:
        """Free the states."""
        for state in self._states:
            state.release()
        self._turns.release()


def _error_of(writer: Fence) -> Exception | None:
    try:
        writer.wait()  # returns at once: it is done
    except Exception as error:
        return error
    return None


def _input_for(model: Model, output: str, name: str) -> Value:
    """Return the input that takes an output's values. Raises InputError if it cannot."""
    outputs = {value.name: value for value in model.outputs}
    inputs = {value.name: value for value in model.inputs}
    for kind, wanted, known in (("output", output, outputs), ("input", name, inputs)):
        if wanted not in known:
            listed = ", ".join(map(str, known.values())) or "none"
            advice = f": carry={{{name!r}: {output!r}}}" if output in inputs and name in outputs else ""
            raise InputError(
                f"{model.name}: carry names {wanted!r}, which is not an {kind}{advice}; the {kind}s are {listed}"
            )
    made, given = outputs[output].spec, inputs[name]
    fits = made.kind == given.kind == "tensor" and made.dtype is given.dtype
    if not fits or not _may_be(made.shape, given.shape):
        raise InputError(
            f"{model.name}: carry={{{output!r}: {name!r}}} does not fit: the output is {made.dtype} {made.shape}, and "
            f"the input {given.dtype} {given.shape}"
        )
    return given


def _may_be(made: DynamicTensorShape | None, given: DynamicTensorShape | None) -> bool:
    """Whether a value of the one shape may have the other, as far as both are known."""
    if made is None or given is None:
        return True
    return len(made) == len(given) and all(
        one == other or not isinstance(one, int) or not isinstance(other, int)
        for one, other in zip(made, given, strict=True)
    )


def _given_dims(model: Model, states: Sequence[str]) -> list[tuple[str, int, str]]:
    """The named dims of inputs that are not states: the input, the axis and the dim's name."""
    return [
        (value.name, axis, dim)
        for value in model.inputs
        if value.name not in states and value.kind == "tensor"
        for axis, dim in enumerate(value.shape or ())
        if isinstance(dim, str)
    ]
