"""A model in parts: groups of layers that are planned, and between them layers that run on the host.

Most models are one part. A layer ends a part if the shape of its output depends on data, or if its values are not
tensors. The inputs of such a layer are read back, and the next part is planned for the shapes of its outputs.
"""

from __future__ import annotations

import logging
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perframe.backends.protocol import Backend
from perframe.backends.refit import Following
from perframe.errors import InputError
from perframe.execution.comparison import LayerCheck, with_all_values
from perframe.execution.partition import decisive_inputs, pieces_of
from perframe.execution.report import MemoryUse, StepReport, steps_of
from perframe.execution.static_branches import Branches, Decisions, follow_shapes
from perframe.layers.twins import signature
from perframe.model import Evaluate, Layer, Model
from perframe.plan.constants import ConstantPool
from perframe.plan.inferred import Outline
from perframe.plan.plan import Plan
from perframe.plan.planner import Planner
from perframe.plan.refit import Templates, Tracing, end_tracing_at_exit, follows_sizes
from perframe.sizes.open_dims import Shapes
from perframe.tensor import BackendType, Storage, Tensor
from perframe.tensor.partial import DynamicTensorShape, PartialTensor
from perframe.tensor.readback import FrameState

log = logging.getLogger("perframe")
Array = NDArray[Any]
Values = dict[str, Any]  # Tensors and arrays; lists for sequences, None for empty optionals

MAX_PLANS = 8  # of one part; the plan that was unused for longest is freed
NO_VALUES: Mapping[str, Array] = MappingProxyType({})
MAX_SETTLED = 256  # sets of input shapes whose branch decisions are remembered
MAX_HOST_VALUES = 1024  # an input that decides shapes is part of a plan's key, up to this many elements


@dataclass(frozen=True)
class Machine:
    """Where parts run: a backend, the CPU beside it, and the functions that compute arrays on the host."""

    backend: Backend
    host: Backend
    evaluate: Evaluate
    run_on_host: Callable[[Any, Sequence[Any]], list[Any]]
    prepare: Callable[[Model], Model]  # a model as the backend's kernels want it
    control: Callable[[Layer, Machine], Part]  # makes the part that runs a branch or a loop
    in_job: Callable[[Callable[[], None]], Any]  # begins a job
    strict: bool
    check: LayerCheck | None = None  # receives each model and all values of its run; with a check, runs keep all values


class Part(Protocol):
    """One part of a model."""

    def run_whole(self, values: Values) -> None:
        """Run the part on `values`, and add its outputs to `values`."""

    def advance(self, values: Values) -> Iterator[str]:
        """Run the part layer by layer, and yield the name of each layer."""

    def report(self, repeats: int) -> list[StepReport]:
        """The steps that its last run ran, timed on the CPU if `repeats` is not 0. No run is under way."""

    def release(self) -> None:
        """Free the memory of the part."""


_templates: weakref.WeakKeyDictionary[Model, Templates] = weakref.WeakKeyDictionary()  # shared by all workers


def _templates_of(model: Model, backend: Backend) -> Templates | None:
    """Return the templates that all workers of this model object share; None where plans do not follow sizes."""
    if not isinstance(backend, Following) or not follows_sizes():
        return None
    found = _templates.get(model)
    return found or _templates.setdefault(model, Templates(model, backend))


class PlannedPart:
    """Layers whose shapes follow from the shapes of their inputs, with one plan for each set of input shapes."""

    def __init__(self, model: Model, machine: Machine) -> None:
        self.model, self._machine = model, machine
        self._constants = ConstantPool(model.constants)
        self._plans: OrderedDict[Any, Plan] = OrderedDict()  # by input shapes; the plan that ran last is at the end
        self._evicted: list[Plan] = []  # plans to free when their last runs are over
        self._names = [value.name for value in model.inputs]
        self._decisive = decisive_inputs(model)
        self._templates = None if self._decisive else _templates_of(model, machine.backend)
        self._to_trace: Shapes | None = None  # shapes that were planned without a template, and may be worth tracing
        self._tracing = Tracing()
        self._signatures = {id(layer): signature(layer) for layer in model.layers}

    def run_whole(self, values: Values) -> None:
        """Bind, submit, and add the outputs, whose values may still be pending."""
        plan = self._bound_plan(values)
        for segment in plan.segments:
            segment.run_whole()
        values.update(plan.outputs)

    def advance(self, values: Values) -> Iterator[str]:
        """Submit the steps of one layer at a time, and yield its name."""
        plan = self._bound_plan(values)
        for segment in plan.segments:
            begin = 0
            while begin < len(segment):
                end = begin + 1
                while end < len(segment) and segment.layers[end] == segment.layers[begin]:
                    end += 1
                segment.run(begin, end)
                yield segment.layers[begin]
                begin = end
        values.update(plan.outputs)

    def _bound_plan(self, values: Values) -> Plan:
        plan = self._plan_for(values)
        for name, bound in plan.bound.items():
            storage = self._storage_of(plan, name, values[name])
            if storage is not bound:
                plan.set_input_storage(name, storage)
        return plan

    def _storage_of(self, plan: Plan, name: str, value: Any) -> Storage:
        """Return storage from which steps can read an input: the input's own if steps reach it, else a copy's."""
        if not isinstance(value, Tensor):
            storage = plan.input_storage(name, value.shape)
            try:
                storage.upload(value)
            except InputError as error:
                raise InputError(f"input {name!r}: {error}") from None
            return storage
        if plan.takes(name, value):
            return value.data_on_backend
        copied = plan.copy_input(name, value)
        return copied if copied is not None else self._storage_of(plan, name, value.download_to_array())

    def _plan_for(self, values: Values) -> Plan:
        shapes = key = tuple([values[name].shape for name in self._names])
        decisive: Mapping[str, Array] = NO_VALUES
        if self._decisive:
            decisive = {name: _host_value(values[name]) for name in self._decisive}
            key = (shapes, *((value.tobytes(), value.shape) for value in decisive.values()))
        plan = self._plans.get(key)
        if plan is not None:
            self._plans.move_to_end(key)
            if self._to_trace is not None:
                self._begin_tracing(plan)
            return plan
        plan = self._templates.plan(shapes, self._machine.backend) if self._templates is not None else None
        if plan is None:
            plan = self._made(shapes, decisive)
            follows = self._templates is not None and self._templates.has_sizes(shapes)
            self._to_trace = shapes if follows else None
        self._plans[key] = plan
        self._evict_old()
        return plan

    def _evict_old(self) -> None:
        """Free the plan that was unused for longest once its runs are over. Never blocks."""
        if len(self._plans) > MAX_PLANS:
            self._evicted.append(self._plans.popitem(last=False)[1])
        for plan in [plan for plan in self._evicted if not plan.is_busy]:
            self._evicted.remove(plan)
            plan.release()

    def _begin_tracing(self, plan: Plan) -> None:
        """Begin to trace in a job, if planning took long compared with a run."""
        shapes, templates = self._to_trace, self._templates
        if shapes is None or templates is None or not templates.is_open:
            self._to_trace = None
        elif plan.is_costly and not plan.is_busy and not templates.is_tracing:
            self._to_trace = None
            self._machine.in_job(partial(self._trace_in_job, shapes))  # other workers may use the templates too
            end_tracing_at_exit()

    def _trace_in_job(self, shapes: Shapes) -> None:
        try:
            self.trace(shapes)
        except Exception as error:  # no caller waits for the job, and planning still works
            log.warning(
                "layer %r cannot be followed to other sizes, so that each new input shape is planned anew: %s: %s",
                self._tracing.layer,
                type(error).__name__,
                error,
            )

    def trace(self, shapes: Shapes) -> None:
        """Make templates from shapes like these, so that other sizes need no planning. Raises the error of a layer that
        cannot be followed.
        """
        if self._templates is not None:
            self._templates.trace(shapes, self._followed, self._tracing)

    def _made(self, shapes: Shapes, decisive: Mapping[str, Array] = NO_VALUES) -> Plan:
        """Make the plan for these input shapes. `decisive` holds the values of the inputs that decide shapes."""
        machine, begin = self._machine, perf_counter_ns()
        plan = self._planned(shapes, machine.backend, machine.host, self._constants, decisive)
        plan.nanoseconds = perf_counter_ns() - begin
        return plan

    def _followed(self, shapes: Shapes, backend: Backend, constants: ConstantPool, at: Callable[[str], None]) -> Plan:
        """Make a plan for followed sizes. It shares no storage with the plans that run."""
        return self._planned(shapes, backend, backend, constants, NO_VALUES, at)

    def _planned(
        self,
        shapes: Shapes,
        backend: Backend,
        host: Backend,
        constants: ConstantPool,
        decisive: Mapping[str, Array],
        at: Callable[[str], None] | None = None,
    ) -> Plan:
        specs = {
            value.name: PartialTensor(value.dtype, DynamicTensorShape(shape), decisive.get(value.name))
            for value, shape in zip(self.model.inputs, shapes, strict=True)
        }
        outline = Outline(self.model, constants.known, specs, self._machine.evaluate, self._signatures, at)
        return Planner(self.model, backend, host, constants, outline, self._machine.strict, at).plan()

    @property
    def memory_use(self) -> MemoryUse:
        """The memory of the part with the plans that it has now."""
        largest = max(self._plans.values(), key=lambda plan: plan.workspace_bytes, default=None)
        workspace, live = (largest.workspace_bytes, largest.live()) if largest else (0, [])
        return MemoryUse(*self._constants.bytes_used, workspace, live)

    def report(self, repeats: int) -> list[StepReport]:
        """The steps of the plan that ran last."""
        plan = next(reversed(self._plans.values()), None)
        return [] if plan is None else steps_of(self.model, plan, repeats)

    def release(self) -> None:
        """Free plans and constants. No run may be under way."""
        for plan in (*self._plans.values(), *self._evicted):
            plan.release()
        self._plans.clear()
        self._evicted.clear()
        self._constants.release()


class HostPart:
    """One layer that computes with arrays on the host. It waits for inputs that lie on a GPU."""

    def __init__(self, layer: Layer, machine: Machine) -> None:
        self._layer, self._machine = layer, machine

    def run_whole(self, values: Values) -> None:
        """Read back, compute, and add the outputs as arrays."""
        given = [downloaded(values[name]) if name else None for name in self._layer.inputs]
        made = self._machine.run_on_host(self._layer, given)
        values.update((name, value) for name, value in zip(self._layer.outputs, made, strict=False) if name)

    def advance(self, values: Values) -> Iterator[str]:
        """Run the whole layer, and yield its name."""
        self.run_whole(values)
        yield self._layer.name

    def report(self, repeats: int) -> list[StepReport]:
        """It has no plan."""
        return []

    def release(self) -> None:
        """Do nothing: the part holds no memory."""


class Parts:
    """All parts of a model, or of the body of a loop or a branch."""

    def __init__(self, model: Model, machine: Machine) -> None:
        self._machine, self._check = machine, machine.check
        self._branches = Branches(model, machine.evaluate) if follow_shapes(model) else None
        self._settled: dict[Any, Parts | None] = {}  # by the inputs' shapes
        self._decided: dict[Decisions, Parts] = {}
        self._names = [value.name for value in model.inputs]
        prepared = machine.prepare(model)
        self.outputs = prepared.outputs
        self.model = prepared if machine.check is None else with_all_values(prepared)
        self._parts = [_part_of(piece, machine) for piece in pieces_of(self.model)]
        self._output_names = prepared.output_names
        # planned parts hold their own constants; these are for layers on the host and for outputs
        read = {name for layer in self.model.layers if layer.declaration.on_host for name in layer.inputs}
        read.update(self.model.output_names)
        self._constants = {name: value for name, value in self.model.constants.items() if name in read}

    def run_whole(self, values: Values) -> None:
        """Run all parts on `values`. `values` must hold the model's inputs, and the parts add their outputs to it."""
        decided = self._settled_for(values) if self._branches else None
        if decided is not None:
            decided.run_whole(values)
            return
        given = self._begin(values)
        for part in self._parts:
            part.run_whole(values)
        if given is not None:
            self._compare(values, given)

    def advance(self, values: Values) -> Iterator[str]:
        """Run the parts layer by layer, and yield the name of each layer."""
        decided = self._settled_for(values) if self._branches else None
        if decided is not None:
            yield from decided.advance(values)
            return
        given = self._begin(values)
        for part in self._parts:
            yield from part.advance(values)
        if given is not None:
            self._compare(values, given)

    def _begin(self, values: Values) -> Values | None:
        """Add the constants to `values`. If the run is to be compared, return copies of its inputs: a run may overwrite
        the states of a loop.
        """
        if self._constants:
            for name, value in self._constants.items():
                values.setdefault(name, value)
        return None if self._check is None else {name: downloaded(values[name]) for name in self._names}

    def _compare(self, values: Values, given: Values) -> None:
        assert self._check is not None
        self._check(self.model, values, given)

    def _settled_for(self, values: Values) -> Parts | None:
        """Return the parts of the model with the branches that these input shapes decide, or None if they decide
        none.
        """
        assert self._branches is not None
        key = tuple([getattr(values[name], "shape", None) for name in self._names])
        if key not in self._settled:
            decisions, model = self._branches.decide(key)
            if decisions and decisions not in self._decided:
                self._decided[decisions] = Parts(model, self._machine)
            if len(self._settled) >= MAX_SETTLED:
                self._settled.clear()
            self._settled[key] = self._decided.get(decisions)
        return self._settled[key]

    @property
    def memory_use(self) -> list[MemoryUse]:
        """The memory of each planned part, without the bodies of loops and branches."""
        return [part.memory_use for part in self._parts if isinstance(part, PlannedPart)]

    def report(self, repeats: int) -> list[StepReport]:
        """The steps that its last runs ran; those of a body stand once."""
        parts: list[Part | Parts] = [*self._parts, *self._decided.values()]
        return [step for part in parts for step in part.report(repeats)]

    def run(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Run all parts, and return the model's outputs in order."""
        values = dict(inputs)
        self.run_whole(values)
        return [values[name] for name in self._output_names]

    def release(self) -> None:
        """Free all parts."""
        for part in (*self._parts, *self._decided.values()):
            part.release()


def downloaded(value: Any) -> Any:
    """Return a value as an array (or a list of arrays, or None). Waits for a pending value."""
    if isinstance(value, list):
        return [downloaded(item) for item in value]
    if not isinstance(value, Tensor):
        return value
    if value.backend_type is not BackendType.CPU:
        FrameState.blocking(f"a layer that reads {value.name!r} on the host")
    return value.data_on_backend.download(value.shape, value.dtype)


def _part_of(piece: Model | Layer, machine: Machine) -> Part:
    if isinstance(piece, Model):
        return PlannedPart(piece, machine)
    return machine.control(piece, machine) if piece.family == "control" else HostPart(piece, machine)


def _host_value(value: Any) -> Array:
    array = np.asarray(downloaded(value))
    if array.size > MAX_HOST_VALUES:
        raise InputError(f"an input that decides shapes may have {MAX_HOST_VALUES} elements, and got {array.size}")
    return array
