"""A worker runs a model on a backend, frame by frame."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perframe.backends import backend_type as backend_type_of
from perframe.backends import evaluator, expect_kernels, host_runner, open_backend
from perframe.control import ControlPart
from perframe.errors import ClosedError, InputError
from perframe.loading import load
from perframe.model import Model, Value
from perframe.parts import Machine, MemoryUse, Parts, Values, on_host
from perframe.prepared import prepared
from perframe.spec import DynamicTensorShape
from perframe.tensor import BackendType, DataType, Tensor

log = logging.getLogger("perframe")
Array = NDArray[Any]
Given = Tensor | ArrayLike


class Worker:
    """Runs a model on one backend. `schedule` returns before the values exist; outputs belong to the worker.

    `ctx` is the caller's moderngl context (a GPU worker without one makes its own, headless). With `strict`, a
    layer that cannot run on the backend raises FallbackError instead of running on the CPU; shape arithmetic may
    always do that.
    """

    def __init__(
        self,
        model: Model,
        backend_type: BackendType | str = BackendType.CPU,
        ctx: Any = None,
        strict: bool = False,
    ) -> None:
        self.model = model
        self.backend_type = backend_type_of(backend_type)
        self._closed = False
        self._backend = open_backend(self.backend_type, ctx)
        self._host = self._backend if self.backend_type is BackendType.CPU else open_backend(BackendType.CPU)
        if self._host is self._backend:
            expect_kernels()
        evaluate = evaluator()
        machine = Machine(self._backend, self._host, evaluate, host_runner(), self._prepare, ControlPart, strict)
        self._parts = Parts(model, machine)
        self._outputs: dict[str, Any] | None = None
        self._runs = 0
        self._set: dict[str, Given] = {}
        self._names = [value.name for value in model.inputs]
        self._output_names = model.output_names
        self._accepted: list[Any] = []  # kinds of the last inputs that could be taken as they were
        self._shared_dims = _shared_dims(model)

    def _prepare(self, model: Model) -> Model:
        return prepared(model, evaluator(), self.backend_type)

    # --- inputs ---

    def set_input(self, name: str | int, value: Given) -> None:
        """Keep an input for the next schedules. Raises InputError for a name that the model does not have."""
        self._check_open()
        self._set[self._input_name(name)] = value

    def empty_input(self, name: str | int = 0, shape: tuple[int, ...] | None = None) -> Tensor:
        """A tensor on this worker's backend for an input, to be filled by a TextureConverter or `upload`.

        `shape` is needed where the model leaves dims open.
        """
        value = self.model.inputs[self._names.index(self._input_name(name))]
        dims = shape if shape is not None else value.shape
        concrete = DynamicTensorShape(dims or ())
        if dims is None or not concrete.is_static:
            raise InputError(f"input {value} has open dims: say the shape")
        made = concrete.to_shape()
        return Tensor.over(self._backend.alloc(made, value.dtype), made, value.dtype, value.name)

    def _input_name(self, name: str | int) -> str:
        if isinstance(name, int):
            if not 0 <= name < len(self._names):
                raise InputError(f"{self.model.name} has {len(self._names)} inputs, none at index {name}")
            return self._names[name]
        if name not in self._names:
            listed = ", ".join(map(str, self.model.inputs)) or "none"
            raise InputError(f"{self.model.name} has no input {name!r}; its inputs are {listed}")
        return name

    def _gather(self, positional: tuple[Any, ...]) -> dict[str, Any]:
        """The inputs of one run by name, checked against the model."""
        given = dict(self._set)
        if len(positional) == 1 and isinstance(positional[0], Mapping):
            for name, value in positional[0].items():
                given[self._input_name(name)] = value
        else:
            if len(positional) > len(self._names):
                raise InputError(f"{self.model.name} takes {len(self._names)} input(s), and got {len(positional)}")
            given.update(zip(self._names, positional, strict=False))
        if len(given) < len(self._names):
            missing = [str(value) for value in self.model.inputs if value.name not in given]
            raise InputError(f"{self.model.name} still needs the input(s) {', '.join(missing)}")
        kinds = [_kind(given[name]) for name in self._names]
        if kinds == self._accepted:  # a frame's inputs are like those of the frame before
            return given
        checked = dict(given)
        for index, value in enumerate(self.model.inputs):
            if not self._accepted or not _is_like(kinds[index], self._accepted[index], value):
                checked[value.name] = _checked(self.model.name, value, given[value.name])
        self._check_names(checked)
        if all(checked[name] is given[name] for name in self._names):
            self._accepted = kinds
        return checked

    def _check_names(self, given: Mapping[str, Any]) -> None:
        """Raise InputError where a named dim is of one size in one input, and of another in another."""
        for dim, ((first, axis), *others) in self._shared_dims.items():
            for name, other in others:
                size, found = given[first].shape[axis], given[name].shape[other]
                if size != found:
                    raise InputError(
                        f"{self.model.name}: the dim {dim!r} is {size} in the input {first!r}, and {found} in {name!r}"
                    )

    # --- runs ---

    def schedule(self, *inputs: Any) -> Worker:
        """Begin a run, and return before its values exist. Inputs by position, or one dict by name, or set before.

        The first run with new input shapes makes a plan; the ones after only bind and submit. A model with layers whose
        shapes depend on data waits for what these need.
        """
        self._check_open()
        values = self._gather(inputs)
        self._runs += 1
        self._parts.run_whole(values)
        self._keep_outputs(values)
        return self

    def schedule_iterable(self, *inputs: Any) -> Iterator[str]:
        """The same, one layer at each step of the iterator, which yields the layer's name.

        A later run ends this one, since they share memory: the iterator raises InputError if it is asked to go on.
        """
        self._check_open()
        return self._advance(self._gather(inputs))

    def _advance(self, values: Values) -> Iterator[str]:
        self._runs += 1
        run = self._runs
        for name in self._parts.advance(values, whole=False):
            yield name
            self._check_open()
            if run != self._runs:
                raise InputError(f"{self.model.name}: another run began before this one ended: begin it again")
        self._keep_outputs(values)

    def _keep_outputs(self, values: Values) -> None:
        self._outputs = {name: _as_output(name, values[name]) for name in self._output_names}
        self._backend.flush()

    def peek_output(self, name: str | int | None = None) -> Any:
        """An output of the last run: by name, by index, or the first.

        The worker owns it, and its values may still be pending.
        """
        self._check_open()
        if self._outputs is None:
            raise InputError(f"{self.model.name} has no outputs before the first schedule()")
        names = self._output_names
        if name is None:
            name = 0
        if isinstance(name, int):
            if not -len(names) <= name < len(names):
                raise InputError(f"{self.model.name} has {len(names)} outputs, none at index {name}")
            name = names[name]
        if name not in names:
            raise InputError(f"{self.model.name} has no output {name!r}; its outputs are {', '.join(names)}")
        return self._outputs[name]

    @property
    def memory_use(self) -> list[MemoryUse]:
        """What each part of the model takes, with the plans that were made so far; most models are one part."""
        self._check_open()
        return self._parts.memory_use

    # --- the end ---

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the worker of {self.model.name} was released")

    def release(self) -> None:
        """Wait for what is under way and free all plans and constants. Further calls raise ClosedError."""
        if self._closed:
            return
        self._closed = True
        self._outputs = None
        self._host.close()
        self._parts.release()
        self._backend.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Worker({self.model.name!r} on {self.backend_type}{', closed' if self._closed else ''})"


def _kind(value: Any) -> tuple[Any, ...]:
    """All that decides whether a value can be an input as it is."""
    return type(value), getattr(value, "shape", None), getattr(value, "dtype", None)


def _is_like(kind: tuple[Any, ...], accepted: tuple[Any, ...], value: Value) -> bool:
    """Whether a value can be an input as one of another kind could, maybe in another shape."""
    return kind == accepted or (kind[::2] == accepted[::2] and value.shape is not None and value.shape.accepts(kind[1]))


def _shared_dims(model: Model) -> dict[str, list[tuple[str, int]]]:
    """The named dims that several inputs have: in which, and on which axis."""
    places: dict[str, list[tuple[str, int]]] = {}
    for value in model.inputs:
        if value.kind == "tensor":
            for axis, dim in enumerate(value.shape or ()):
                if isinstance(dim, str):
                    places.setdefault(dim, []).append((value.name, axis))
    return {dim: found for dim, found in places.items() if len(found) > 1}


def _checked(model: str, value: Value, given: Any) -> Any:
    """An input of the right dtype and a shape that fits. Raises InputError."""
    if value.kind == "sequence" or (value.kind == "optional" and isinstance(given, list)):
        return [np.asarray(item) for item in given]
    if value.kind == "optional" and given is None:
        return None
    array: Tensor | Array = given if isinstance(given, Tensor) else np.asarray(given)
    if not isinstance(array, Tensor) and array.dtype.kind in "US":
        array = array.astype(object)
    dtype = DataType.of(array.dtype)
    if dtype is not value.dtype:
        raise InputError(
            f"{model}: input {value.name!r} is {value.dtype}, and got {dtype} {tuple(array.shape)}: convert it first"
        )
    if value.shape is not None and not value.shape.accepts(array.shape):
        raise InputError(f"{model}: input {value.name!r} has the shape {value.shape}, and got {tuple(array.shape)}")
    return array


def _as_output(name: str, value: Any) -> Any:
    """A tensor; what was computed on the host becomes one, sequences and empty optionals stay as they are."""
    if not isinstance(value, np.ndarray):
        return value
    tensor = Tensor(value)
    tensor.name = name
    return tensor


def run(
    model: Model | str | Path | bytes | IO[bytes] | Any,
    inputs: Mapping[str, Given],
    backend: BackendType | str = BackendType.CPU,
    strict: bool = False,
    ctx: Any = None,
) -> dict[str, Array]:
    """Run once and wait: the outputs by name, in the model's order. `model` is a Model or all that `load` takes."""
    loaded = model if isinstance(model, Model) else load(model)
    with Worker(loaded, backend, ctx, strict) as worker:
        worker.schedule(dict(inputs))
        return {name: on_host(worker.peek_output(name)) for name in loaded.output_names}
