"""States: outputs of a run that the next run reads as inputs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.backends.protocol import Backend
from perframe.errors import InputError
from perframe.execution.inputs import checked_input
from perframe.execution.machine import Values, as_output
from perframe.execution.outputs import copy_values
from perframe.ir import Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.plan.plan import Target
from perframe.tensor import DataType, Fence, Storage, Tensor, TensorShape

log = logging.getLogger("perframe")


class State(Target):
    """One output that the next run reads. Two storages take turns, so that nothing is copied.

    Only a run that ends changes `value`: a tensor, an array, or None for zeros of a shape that is not known yet.
    """

    def __init__(self, output: str, given: Value) -> None:
        self.output, self.source, self.given = output, given.name, given
        self._storages: list[Storage] = []
        self._accepted: TensorShape | None = None  # the last shape
        self._history: list[tuple[Any, Fence | None]] = [(None, None)]  # the last good value, and those after it

    @property
    def value(self) -> Any:
        """The value that the next run reads."""
        return self._history[-1][0]

    def reset(self, value: Any) -> None:
        """Begin again, with this value."""
        self._history = [(value, None)]

    def storage(self, output: Tensor, planned: Storage, spare: Callable[[], Storage | None]) -> Storage:
        """Return storage in which the state does not lie."""
        found = self._free(planned)
        if found is None and planned is not self._read and planned.is_open:
            found = planned
        if found is None:
            found = spare()
        if found is None or not _serves(found, planned):
            found = planned.like(output.shape, output.dtype)
        return self._keep(found)

    @property
    def _read(self) -> Storage | None:
        """The storage in which the state lies."""
        return self.value.data_on_backend if isinstance(self.value, Tensor) else None

    def _free(self, planned: Storage) -> Storage | None:
        """The storage in which the state does not lie, if it can stand for `planned`."""
        read = self._read
        return next((one for one in self._storages if one is not read and _serves(one, planned)), None)

    def _keep(self, storage: Storage) -> Storage:
        read = self._read
        self._storages = [storage, *(one for one in self._storages if one is read)]
        return storage

    def check(self, value: Any) -> None:
        """Raise InputError if the input cannot take this output of a run."""
        if not isinstance(value, Tensor) or (value.shape != self._accepted and not self._accepts(value.shape)):
            found = f"{value.dtype} {value.shape}" if isinstance(value, Tensor) else "no tensor"
            raise InputError(
                f"the output {self.output!r} of this run is {found}, which its input {self.given} cannot take. The "
                "state is as it was before the run"
            )

    def end(self, value: Tensor, backend: Backend) -> None:
        """Make the output of a run the state."""
        if value.data_on_backend not in self._storages:  # a layer on the host or in a loop made it
            value = self._copied(value, backend)
        self._history.append((value, value.data_on_backend.write))

    def _accepts(self, shape: TensorShape) -> bool:
        if self.given.shape is not None and not self.given.shape.accepts(shape):
            return False
        self._accepted = shape
        return True

    def _copied(self, value: Tensor, backend: Backend) -> Tensor:
        storage = value.data_on_backend
        target = self._keep(self._free(storage) or storage.like(value.shape, value.dtype))
        copy_values(value, target, backend, f"the state {self.source!r}")
        return Tensor.over(target, value.shape, value.dtype, self.output)

    def settle(self) -> None:
        """Return to the last good value if a run has failed since. Runs that needed the failed one wrote nothing."""
        while len(self._history) > 1:
            (good, _), (_, writer) = self._history[:2]
            if writer is not None and not writer.done:
                return
            error = _error_of(writer)
            if error is None:
                del self._history[0]
                continue
            log.warning("a run failed, and the state %r is as before it: %s", self.source, error)
            self._history = [(good, None)]
            if isinstance(good, Tensor):
                good.data_on_backend.write = None

    def release(self) -> None:
        """Free the storage."""
        for storage in self._storages:
            storage.release()
        self._storages, self._history = [], [(None, None)]


class States:
    """All states of a worker. `pairs` maps outputs to inputs. Raises InputError for a pair that cannot work."""

    def __init__(self, model: Model, pairs: Mapping[str, str], backend: Backend, cast: bool) -> None:
        self._model, self._backend, self._cast = model, backend, cast
        if not isinstance(pairs, Mapping):
            raise InputError(f"carry is a dict from outputs to inputs, and got {type(pairs).__name__}")
        sources = list(pairs.values())
        twice = [name for name in sources if sources.count(name) > 1]
        if twice:
            raise InputError(f"{model.name}: carry gives the input {twice[0]!r} two outputs")
        self._states = [State(output, _input_for(model, output, name)) for output, name in pairs.items()]
        self._shapes: list[Any] = []  # of the last run's inputs

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
        for state in self._states:
            state.settle()
            values[state.source] = state.value
        shapes = [getattr(values[value.name], "shape", None) for value in self._model.inputs]
        if shapes == self._shapes:
            return
        dims = _dims_of(self._model, values, self.sources)
        for state in self._states:
            if state.value is None:
                values[state.source] = self._zeros(state.given, dims)
            elif state.given.shape is not None:
                _check_dims(state, dims)
        self._shapes = [getattr(values[value.name], "shape", None) for value in self._model.inputs]

    def end(self, values: Values) -> None:
        """Make the outputs of a run the states, all of them or none. Raises InputError if an input cannot take one."""
        made = [as_output(state.output, values[state.output]) for state in self._states]
        for state, value in zip(self._states, made, strict=True):
            state.check(value)
        for state, value in zip(self._states, made, strict=True):
            state.end(value, self._backend)

    def reset(self, given: Any) -> None:
        """Begin with these values, and with zeros where none is given. A single state may be given without a dict."""
        if given is not None and not isinstance(given, Mapping):
            if len(self._states) != 1:
                raise InputError(
                    f"{self._model.name} has {len(self._states)} states: reset({{name: array}}) names them"
                )
            given = {self._states[0].source: given}
        for name in given or {}:
            self._state(name)
        values = [
            self._own(checked_input(self._model.name, state.given, given[state.source], self._cast))
            if given and state.source in given
            else None
            for state in self._states
        ]
        for state, value in zip(self._states, values, strict=True):
            state.reset(value)
        self._shapes = []

    def value(self, name: str | None) -> Tensor:
        """Return the value of a state as a tensor. Raises InputError if its shape is not known yet."""
        state = self._state(name)
        state.settle()
        value = state.value
        if value is None:
            value = self._zeros(state.given, {})
        if isinstance(value, Tensor):
            return value
        made = Tensor(value)
        made.name = state.source
        return made

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

    def _own(self, value: Any) -> Any:
        """Copy a value that the caller may change."""
        if not isinstance(value, Tensor):
            return value.copy()
        if not (value.is_pinned and self._backend.owns(value.data_on_backend)):
            return value.download_to_array()
        storage = self._backend.alloc(value.shape, value.dtype)
        self._backend.copy(value.data_on_backend, storage, value.shape, value.dtype)
        return Tensor.over(storage, value.shape, value.dtype, value.name)

    def _zeros(self, given: Value, dims: Mapping[str, int]) -> Any:
        shape = None if given.shape is None else given.shape.with_dims(dims)
        if shape is None or not shape.is_static:
            raise InputError(
                f"{self._model.name}: the state {given} has open dims, which no other input has: begin with "
                f"worker.reset({{{given.name!r}: array}})"
            )
        return np.full(shape.to_shape(), "" if given.dtype is DataType.STRING else 0, given.dtype.numpy)

    def release(self) -> None:
        """Free the states."""
        for state in self._states:
            state.release()


def _serves(storage: Storage, planned: Storage) -> bool:
    """Whether a storage can hold what another was planned for."""
    return (
        storage.is_open
        and storage.backend_type is planned.backend_type
        and storage.element_bytes == planned.element_bytes
        and storage.max_capacity >= planned.max_capacity
    )


def _error_of(writer: Fence | None) -> Exception | None:
    try:
        if writer is not None:
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
            raise InputError(f"{model.name}: carry names {wanted!r}, which is not an {kind}; the {kind}s are {listed}")
    made, given = outputs[output].spec, inputs[name]
    fits = made.kind == given.kind == "tensor" and made.dtype is given.dtype
    if not fits or not _may_be(made.shape, given.shape):
        raise InputError(
            f"{model.name}: carry cannot make the output {output!r} ({made.dtype} {made.shape}) the input {given}"
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


def _dims_of(model: Model, values: Values, without: Sequence[str]) -> dict[str, int]:
    """The named dims that the inputs of a run have, states apart."""
    return {
        dim: values[value.name].shape[axis]
        for value in model.inputs
        if value.name not in without and value.kind == "tensor"
        for axis, dim in enumerate(value.shape or ())
        if isinstance(dim, str)
    }


def _check_dims(state: State, dims: Mapping[str, int]) -> None:
    assert state.given.shape is not None
    for dim, size in zip(state.given.shape, state.value.shape, strict=True):
        wanted = size if isinstance(dim, int) or dim is None else dims.get(dim, size)
        if size != wanted:
            raise InputError(
                f"the state {state.source!r} is {tuple(state.value.shape)}, and {dim!r} is {wanted} in this run's "
                "inputs: call reset() to begin again"
            )
