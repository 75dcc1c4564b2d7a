"""A model in parts: stretches of layers that are planned, and between them layers that run on the host.

Most models are one part. A layer whose output's shape depends on data, or whose values are no tensors, ends a part:
what it needs is read back, and the next part is planned for the shapes that came out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perframe.backends.base import Backend
from perframe.branches import Branches, Decisions, follow_shapes
from perframe.errors import InputError
from perframe.layers.twins import signature
from perframe.model import Evaluate, Layer, Model, Value
from perframe.open_dims import OpenDims, Shapes
from perframe.outline import Outline
from perframe.plan import Plan
from perframe.planning import Planner
from perframe.readback import FrameState
from perframe.spec import DynamicTensorShape, PartialTensor
from perframe.stretch import ConstantPool
from perframe.template import Templates
from perframe.tensor import BackendType, Storage, Tensor

Array = NDArray[Any]
Values = dict[str, Any]  # Tensors and arrays; lists for sequences, None for empty optionals

MAX_PLANS = 8  # plans for input shapes that were not used lately are freed
NO_VALUES: Mapping[str, Array] = MappingProxyType({})
MAX_SETTLED = 256  # input shapes of which it is remembered how they decide branches
MAX_HOST_VALUES = 1024  # an input that decides shapes is part of a plan's key, up to this many elements


@dataclass(frozen=True)
class Machine:
    """Where parts run: a backend, the CPU beside it, and how arrays are computed on the host."""

    backend: Backend
    host: Backend
    evaluate: Evaluate
    run_on_host: Callable[[Any, Sequence[Any]], list[Any]]
    prepare: Callable[[Model], Model]  # a model as the backend's kernels want it
    control: Callable[[Layer, Machine], Part]  # makes the part that runs a branch or a loop
    strict: bool


@dataclass(frozen=True)
class MemoryUse:
    """What a part of a model takes, in bytes: its constants as the model has them, those of them that kernels read as
    they are, and what was made of the others for kernels; its largest plan's values within a run, and for each layer
    that runs those of them that are live then.
    """

    constants: int
    read: int
    packed: int
    workspace: int
    live: list[tuple[str, int]]


class Part(Protocol):
    """One part of a model."""

    def advance(self, values: Values, whole: bool) -> Iterator[str]:
        """Run it on `values` and add what it makes to them; yields the name of each layer, or once if `whole`."""

    def release(self) -> None:
        """Free what it holds."""


class PlannedPart:
    """Layers whose shapes follow from their inputs' shapes, with a plan for each set of these."""

    def __init__(self, model: Model, machine: Machine) -> None:
        self.model, self._machine = model, machine
        self._constants = ConstantPool(model.constants)
        self._plans: OrderedDict[Any, Plan] = OrderedDict()  # by shapes, the one that ran last at the end
        self._latest: Plan | None = None
        self._names = [value.name for value in model.inputs]
        self._decisive = _decisive_inputs(model)
        self._templates = Templates(machine.backend, OpenDims([value.shape for value in model.inputs]), self._made)
        self._signatures = {id(layer): signature(layer) for layer in model.layers}

    def run_whole(self, values: Values) -> None:
        """Bind, submit, and add the outputs, whose values may still be pending."""
        plan = self._bound_plan(values)
        for stretch in plan.stretches:
            stretch.run(0, len(stretch))
        values.update(plan.outputs)

    def advance(self, values: Values, whole: bool) -> Iterator[str]:
        """The same; yields the name of each layer, or of the first of each stretch if `whole`."""
        plan = self._bound_plan(values)
        for stretch in plan.stretches:
            begin = 0
            while begin < len(stretch):
                end = len(stretch) if whole else begin + 1
                while end < len(stretch) and stretch.layers[end] == stretch.layers[begin]:
                    end += 1
                stretch.run(begin, end)
                yield stretch.layers[begin]
                begin = end
        values.update(plan.outputs)

    def _bound_plan(self, values: Values) -> Plan:
        plan = self._plan_for(values)
        for name in plan.bound:
            plan.bind(name, self._storage_of(plan, name, values[name]))
        return plan

    def _storage_of(self, plan: Plan, name: str, value: Any) -> Storage:
        """Where steps can read an input: where it lies, if they reach that, or where it is copied or uploaded to."""
        if not isinstance(value, Tensor):
            storage = plan.input_storage(name, value.shape)
            storage.upload(value)
            return storage
        if plan.takes(name, value):
            return value.data_on_backend
        copied = plan.copy_input(name, value)
        return copied if copied is not None else self._storage_of(plan, name, value.download_to_array())

    def _plan_for(self, values: Values) -> Plan:
        shapes = key = tuple([values[name].shape for name in self._names])
        if self._decisive:
            decisive = {name: _host_value(values[name]) for name in self._decisive}
            key = (shapes, *((value.tobytes(), value.shape) for value in decisive.values()))
        plan = self._plans.get(key)
        if plan is not None:
            self._plans.move_to_end(key)
            self._latest = plan
            return plan
        plan = self._made(shapes, decisive) if self._decisive else self._templates.plan(shapes, self._latest)
        self._plans[key] = self._latest = plan
        if len(self._plans) > MAX_PLANS:
            _, old = self._plans.popitem(last=False)
            self._machine.backend.close()  # what is under way may still use it
            old.release()
        return plan

    def _made(self, shapes: Shapes, decisive: Mapping[str, Array] = NO_VALUES) -> Plan:
        """The plan for input shapes, and for the values of those inputs that decide others."""
        specs = {
            value.name: PartialTensor(value.dtype, DynamicTensorShape(shape), decisive.get(value.name))
            for value, shape in zip(self.model.inputs, shapes, strict=True)
        }
        machine = self._machine
        outline = Outline(self.model, self._constants.known, specs, machine.evaluate, self._signatures)
        return Planner(self.model, machine.backend, machine.host, self._constants, outline, machine.strict).plan()

    @property
    def memory_use(self) -> MemoryUse:
        """What it takes with the plans that it has now."""
        largest = max(self._plans.values(), key=lambda plan: plan.workspace_bytes, default=None)
        workspace, live = (largest.workspace_bytes, largest.live()) if largest else (0, [])
        return MemoryUse(*self._constants.bytes_used, workspace, live)

    def release(self) -> None:
        """Free plans and constants."""
        self._templates.release()
        for plan in self._plans.values():
            plan.release()
        self._plans.clear()
        self._latest = None
        self._constants.release()


class HostPart:
    """One layer on arrays. What it reads from a GPU is waited for."""

    def __init__(self, layer: Layer, machine: Machine) -> None:
        self._layer, self._machine = layer, machine

    def advance(self, values: Values, whole: bool) -> Iterator[str]:
        """Read back, compute, and add the outputs as arrays."""
        given = [on_host(values[name]) if name else None for name in self._layer.inputs]
        made = self._machine.run_on_host(self._layer, given)
        values.update((name, value) for name, value in zip(self._layer.outputs, made, strict=False) if name)
        yield self._layer.name

    def release(self) -> None:
        """It holds nothing."""


class Parts:
    """A whole model, or the body of a loop or a branch."""

    def __init__(self, model: Model, machine: Machine) -> None:
        self._machine = machine
        self._branches = Branches(model, machine.evaluate) if follow_shapes(model) else None
        self._settled: dict[Any, Parts | None] = {}  # by the inputs' shapes
        self._decided: dict[Decisions, Parts] = {}
        self._names = [value.name for value in model.inputs]
        self.model = machine.prepare(model)
        self._parts = list(_partition(self.model, machine))
        self._output_names = self.model.output_names
        # planned parts hold their own
        read = {name for layer in self.model.layers if layer.declaration.on_host for name in layer.inputs}
        read.update(self._output_names)
        self._constants = {name: value for name, value in self.model.constants.items() if name in read}

    def run_whole(self, values: Values) -> None:
        """Run all parts on `values`, which must hold the model's inputs and get all that the parts make."""
        decided = self._settled_for(values) if self._branches else None
        if decided is not None:
            decided.run_whole(values)
            return
        self._add_constants(values)
        for part in self._parts:
            if isinstance(part, PlannedPart):
                part.run_whole(values)
            else:
                for _ in part.advance(values, whole=True):
                    pass

    def advance(self, values: Values, whole: bool = True) -> Iterator[str]:
        """The same, and yields the names of layers."""
        decided = self._settled_for(values) if self._branches else None
        if decided is not None:
            yield from decided.advance(values, whole)
            return
        self._add_constants(values)
        for part in self._parts:
            yield from part.advance(values, whole)

    def _settled_for(self, values: Values) -> Parts | None:
        """The parts of the model with the branches that these inputs' shapes decide; None where they decide none."""
        assert self._branches is not None
        key = tuple([getattr(values[name], "shape", None) for name in self._names])
        if key not in self._settled:
            decisions, model = self._branches.settle(key)
            if decisions and decisions not in self._decided:
                self._decided[decisions] = Parts(model, self._machine)
            if len(self._settled) >= MAX_SETTLED:
                self._settled.clear()
            self._settled[key] = self._decided.get(decisions)
        return self._settled[key]

    def _add_constants(self, values: Values) -> None:
        for name, value in self._constants.items():
            values.setdefault(name, value)

    @property
    def memory_use(self) -> list[MemoryUse]:
        """What its planned parts take, but for bodies of loops and branches."""
        return [part.memory_use for part in self._parts if isinstance(part, PlannedPart)]

    def run(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The model's outputs, in order."""
        values = dict(inputs)
        self.run_whole(values)
        return [values[name] for name in self._output_names]

    def release(self) -> None:
        """Free what the parts hold."""
        for part in (*self._parts, *self._decided.values()):
            part.release()


def on_host(value: Any) -> Any:
    """A value as an array (or a list of arrays, or None), waited for if it is pending."""
    if isinstance(value, list):
        return [on_host(item) for item in value]
    if not isinstance(value, Tensor):
        return value
    if value.backend_type is not BackendType.CPU:
        FrameState.blocking(f"a layer that reads {value.name!r} on the host")
    return value.data_on_backend.download(value.shape, value.dtype)


def _partition(model: Model, machine: Machine) -> Iterator[Part]:
    """Cut a model where a layer runs on the host, and where shapes depend on what was just computed."""
    if not any(layer.declaration.on_host for layer in model.layers) and not _cuts(model):
        yield PlannedPart(model, machine)
        return
    cuts, specs, group = _cuts(model), model.infer(), list[Layer]()
    for index, layer in enumerate(model.layers):
        if group and (layer.declaration.on_host or layer.name in cuts):
            yield PlannedPart(_sub_model(model, group, model.layers[index:], specs), machine)
            group = []
        if layer.declaration.on_host:
            yield machine.control(layer, machine) if layer.family == "control" else HostPart(layer, machine)
        else:
            group.append(layer)
    if group:
        yield PlannedPart(_sub_model(model, group, [], specs), machine)


def _cuts(model: Model) -> set[str]:
    """The layers that need a value on the host which the layers before them compute from data, and not from shapes."""
    cuts: set[str] = set()
    from_data = {value.name for value in model.inputs if value.dtype.is_float}
    made_here: set[str] = set()
    for layer in model.layers:
        needed = [name for index, name in enumerate(layer.inputs) if layer.declaration.is_host(index)]
        if any(name in from_data and name in made_here for name in needed):
            cuts.add(layer.name)
            from_data = {n for n in from_data | made_here if n in from_data}
            made_here = set()
        if layer.declaration.on_host:
            made_here = set()
        elif layer.declaration.reads_values and any(name in from_data for name in layer.inputs):
            from_data.update(layer.outputs)
            made_here.update(layer.outputs)
    return cuts


def _sub_model(
    model: Model, layers: Sequence[Layer], later: Sequence[Layer], specs: Mapping[str, PartialTensor]
) -> Model:
    """Some layers as a model of their own; its outputs are what later layers read, and the model's outputs."""
    made = {name for layer in layers for name in layer.outputs if name}
    read = dict.fromkeys(name for layer in layers for name in layer.inputs if name and name not in made)
    wanted = {name for layer in later for name in layer.inputs} | set(model.output_names)
    outputs = [name for layer in layers for name in layer.outputs if name in wanted]

    def value(name: str) -> Value:
        return Value(name, specs[name].dtype, specs[name].shape)

    constants = {name: model.constants[name] for name in read if name in model.constants}
    inputs = [value(name) for name in read if name not in constants]
    return Model(inputs, [value(name) for name in outputs], layers, constants, model.name)


def _decisive_inputs(model: Model) -> list[str]:
    """The inputs of the model whose values decide shapes: those that a layer must know before it can be planned."""
    needed: set[str] = set()
    for layer in reversed(model.layers):
        if needed & set(layer.outputs) and layer.declaration.reads_values:
            needed.update(layer.inputs)
        needed.update(name for index, name in enumerate(layer.inputs) if layer.declaration.is_host(index))
    return [value.name for value in model.inputs if value.name in needed]


def _host_value(value: Any) -> Array:
    array = np.asarray(on_host(value))
    if array.size > MAX_HOST_VALUES:
        raise InputError(f"an input that decides shapes may have {MAX_HOST_VALUES} elements, and got {array.size}")
    return array
