"""A worker runs a model on a backend, frame by frame."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perframe.backends import backend_type as backend_type_of
from perframe.backends import evaluator, open_backend
from perframe.errors import ClosedError, InputError
from perframe.loading import load
from perframe.model import Model, Value
from perframe.plan import Plan
from perframe.spec import DynamicTensorShape, PartialTensor
from perframe.stretch import ConstantPool
from perframe.tensor import BackendType, DataType, Tensor

log = logging.getLogger("perframe")
Array = NDArray[Any]
Given = Tensor | ArrayLike

MAX_PLANS = 8  # plans for input shapes that were not used lately are freed
MAX_HOST_VALUES = 1024  # an input that decides shapes is part of a plan's key, up to this many elements


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
        self._strict = strict
        self._backend = open_backend(self.backend_type, ctx)
        self._host = self._backend if self.backend_type is BackendType.CPU else open_backend(BackendType.CPU)
        self._constants = ConstantPool(model.constants)
        self._evaluate = evaluator()
        self._plans: OrderedDict[Any, Plan] = OrderedDict()
        self._plan: Plan | None = None
        self._set: dict[str, Given] = {}
        self._names = [value.name for value in model.inputs]
        self._host_inputs = _host_inputs(model)

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

    def _gather(self, positional: tuple[Any, ...]) -> dict[str, Tensor | Array]:
        """The inputs of one run by name, checked against the model."""
        given = dict(self._set)
        if len(positional) == 1 and isinstance(positional[0], Mapping):
            given |= {self._input_name(name): value for name, value in positional[0].items()}
        else:
            if len(positional) > len(self._names):
                raise InputError(f"{self.model.name} takes {len(self._names)} input(s), and got {len(positional)}")
            given |= dict(zip(self._names, positional, strict=False))
        missing = [str(value) for value in self.model.inputs if value.name not in given]
        if missing:
            raise InputError(f"{self.model.name} still needs the input(s) {', '.join(missing)}")
        return {value.name: _checked(self.model.name, value, given[value.name]) for value in self.model.inputs}

    # --- runs ---

    def schedule(self, *inputs: Any) -> Worker:
        """Begin a run, and return before its values exist. Inputs by position, or one dict by name, or set before.

        The first run with new input shapes makes a plan; the ones after only bind and submit.
        """
        plan = self._prepare(inputs)
        for stretch in plan.stretches:
            stretch.run(0, len(stretch))
        self._backend.flush()
        return self

    def schedule_iterable(self, *inputs: Any) -> Iterator[str]:
        """The same, one layer at each step of the iterator, which yields the layer's name."""
        plan = self._prepare(inputs)
        return self._advance(plan)

    def _advance(self, plan: Plan) -> Iterator[str]:
        for stretch in plan.stretches:
            begin = 0
            while begin < len(stretch):
                end = begin + 1
                while end < len(stretch) and stretch.layers[end] == stretch.layers[begin]:
                    end += 1
                self._check_open()
                stretch.run(begin, end)
                yield stretch.layers[begin]
                begin = end
        self._backend.flush()

    def _prepare(self, inputs: tuple[Any, ...]) -> Plan:
        self._check_open()
        values = self._gather(inputs)
        plan = self._plan_for(values)
        for name, value in values.items():
            if name not in plan.bound:
                continue
            if isinstance(value, Tensor) and plan.takes(name, value):
                plan.bind(name, value.data_on_backend)
                continue
            storage = plan.input_storage(name)
            storage.upload(value.download_to_array() if isinstance(value, Tensor) else value)
            plan.bind(name, storage)
        self._plan = plan
        return plan

    def _plan_for(self, values: Mapping[str, Tensor | Array]) -> Plan:
        decisive = {name: np.asarray(_host_value(values[name])) for name in self._host_inputs}
        key = (
            tuple(tuple(value.shape) for value in values.values()),
            tuple((value.tobytes(), value.shape) for value in decisive.values()),
        )
        plan = self._plans.get(key)
        if plan is not None:
            self._plans.move_to_end(key)
            return plan
        specs = {}
        for value in self.model.inputs:
            shape = DynamicTensorShape(values[value.name].shape)
            specs[value.name] = PartialTensor(value.dtype, shape, decisive.get(value.name))
        plan = Plan(self.model, self._backend, self._host, self._constants, self._evaluate, specs, self._strict)
        self._plans[key] = plan
        if len(self._plans) > MAX_PLANS:
            _, old = self._plans.popitem(last=False)
            self._backend.close()  # what is under way may still use it
            old.release()
        return plan

    def peek_output(self, name: str | int | None = None) -> Tensor:
        """An output of the last run: by name, by index, or the first.

        The worker owns it, and its values may still be pending.
        """
        self._check_open()
        if self._plan is None:
            raise InputError(f"{self.model.name} has no outputs before the first schedule()")
        names = self.model.output_names
        if name is None:
            name = 0
        if isinstance(name, int):
            if not -len(names) <= name < len(names):
                raise InputError(f"{self.model.name} has {len(names)} outputs, none at index {name}")
            name = names[name]
        if name not in names:
            raise InputError(f"{self.model.name} has no output {name!r}; its outputs are {', '.join(names)}")
        return self._plan.outputs[name]

    # --- the end ---

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the worker of {self.model.name} was released")

    def release(self) -> None:
        """Wait for what is under way and free all plans and constants. Further calls raise ClosedError."""
        if self._closed:
            return
        self._closed = True
        self._plan = None
        self._host.close()
        for plan in self._plans.values():
            plan.release()
        self._plans.clear()
        self._constants.release()
        self._backend.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Worker({self.model.name!r} on {self.backend_type}{', closed' if self._closed else ''})"


def _checked(model: str, value: Value, given: Given) -> Tensor | Array:
    """An input of the right dtype and a shape that fits. Raises InputError."""
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


def _host_inputs(model: Model) -> list[str]:
    """The inputs of the model whose values decide shapes: those that a layer must know before it can be planned."""
    needed: set[str] = set()
    for layer in reversed(model.layers):
        if needed & set(layer.outputs) and layer.op not in ("Shape", "Size"):
            needed.update(layer.inputs)
        needed.update(name for index, name in enumerate(layer.inputs) if layer.declaration.is_host(index))
    return [value.name for value in model.inputs if value.name in needed]


def _host_value(value: Tensor | Array) -> Array:
    array = value.download_to_array() if isinstance(value, Tensor) else value
    if array.size > MAX_HOST_VALUES:
        raise InputError(f"an input that decides shapes may have {MAX_HOST_VALUES} elements, and got {array.size}")
    return array


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
        outputs = [worker.peek_output(name) for name in loaded.output_names]
        return {y.name: y.data_on_backend.download(y.shape, y.dtype) for y in outputs}
