"""A part of a model with plans: layers whose shapes follow from the shapes of the part's inputs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from time import perf_counter_ns, sleep
from types import MappingProxyType
from typing import Any

from perframe.backends.protocol import Backend
from perframe.errors import MemoryLimitError
from perframe.execution.deciding import can_follow, host_value, key_of, sizes_of, traced_values, values_in
from perframe.execution.machine import Machine, Values
from perframe.execution.plan_cache import PlanCache
from perframe.execution.report import MemoryUse, StepReport, steps_of
from perframe.ir import Subgraph, Value
from perframe.ir.equality import signature
from perframe.ir.sizes.open_dims import Shapes
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.plan.analysis import Analysis
from perframe.plan.budget import Budget, Position, Stopwatch
from perframe.plan.constants import ConstantPool, MissingConstant
from perframe.plan.plan import NO_TARGETS, Plan, Target, carried_by
from perframe.plan.planner import Planner
from perframe.plan.refit import FittedPlan, templates_of
from perframe.plan.tracing import Tracing
from perframe.safety.collection import uncollected
from perframe.tensor import Array, Storage, Tensor

log = logging.getLogger("perframe")
MANY_PLANS = 4  # made one after the other: no trace waits any longer for a measured run
WORTH_PLANS = 8  # a run waits for a trace for as long as this many plans take
NO_VALUES: Mapping[Value, Array] = MappingProxyType({})


class PlannedPart:
    """Layers whose shapes follow from the shapes of their inputs, with one plan for each set of input shapes."""

    def __init__(self, model: Subgraph, machine: Machine, targets: Mapping[str, Target] = NO_TARGETS) -> None:
        self.model, self._machine, self._targets = model, machine, targets
        self._carried = carried_by(targets)
        self.grows = bool(self._carried.grown)  # so that hardly any run has the shapes of another
        self.constants = ConstantPool(model.constants)
        self._plans = PlanCache()
        self._names = [value.name for value in model.inputs]
        self._decisive = model.decisive_inputs
        self._templates = templates_of(model, machine.backend, self._carried) if can_follow(model) else None
        if self._templates is not None:
            self._templates.users.add(self)
            self._templates.keeps_trying |= self.grows
        self._to_trace: Shapes | None = None  # shapes that were planned without a template, and may be worth tracing
        self._tracing = Tracing()
        self._signatures = {layer: signature(layer) for layer in model.layers}
        self._made_plans = 0

    def run_whole(self, values: Values) -> None:
        """Bind, submit, and add the outputs, whose values may still be pending."""
        plan = self._bound(values)
        for segment in plan.segments:
            segment.run_whole()
        values.update(plan.outputs)

    def advance(self, values: Values) -> Iterator[str]:
        """Submit the steps of one layer at a time, and yield its name."""
        held: list[Tensor] = []
        plan = self._bound(values, held)
        yield from plan.advance()
        values.update(plan.outputs)

    def spend(self, values: Values, budget: Budget) -> Iterator[None]:
        """Run the part, waiting for its steps, and yield whenever the budget is spent."""
        watch, held = Stopwatch(), list[Tensor]()
        for layer in self.plan_ahead(values):
            budget.spend(watch.lap(), layer)
            if budget.is_spent:
                yield
                watch.lap()
        plan = self._bound(values, held)
        budget.spend(watch.lap(), "the inputs")
        for segment in plan.segments:
            at: Position = 0, 0
            while at[0] < len(segment):
                if budget.is_spent:
                    yield
                after = segment.spend(at, budget)
                if after == at:  # what comes next does not fit into the rest of the frame
                    yield
                at = after
        values.update(plan.outputs)

    def _bound(self, values: Values, held: list[Tensor] | None = None) -> Plan:
        """Return the plan for these inputs, bound to them. Raises MemoryLimitError, and then leaves all as it was."""
        for _ in range(2):
            try:
                plan = self._plan_for(values)
                plan.bind(values, held, self._targets)
                return plan
            except MemoryLimitError as error:  # its traceback holds memory, and goes with it
                self._drop_new()
                given = ", ".join(f"{name} {tuple(values[name].shape)}" for name in self._names)
                failed = error.of(f"{self.model.name} with the inputs {given}")
            self._machine.host.wait_for_jobs()  # runs under way hold memory too
            while self.drop_oldest():
                pass
        raise failed

    def _drop_new(self) -> None:
        """Drop the last plan if it never ran, with the constants that are its alone."""
        if (last := self._plans.last) is not None and not last.has_begun:
            self._plans.drop_last()
            if last.constants is not None or not self._plans:
                self.constants.free_after(last.constants or 0)

    def touch(self, values: Values) -> Iterator[None]:
        """Run a small part of each step, one at a time: the driver then compiles what it has put off. The outputs are
        not those of a run.
        """
        held: list[Tensor] = []
        plan = self._bound(values, held)
        yield from plan.touch()
        values.update(plan.outputs)

    def hold(self, values: Values) -> None:
        """Replace arrays by tensors with copies, if there is a plan: the run begins later, and arrays may change."""
        if (plan := self._plans.get(self._key(values)[0])) is not None:
            plan.hold(values)

    def planner(self, values: Values, backend: Backend | None = None, constants: ConstantPool | None = None) -> Planner:
        """Return the planner for these inputs, with all shapes inferred, in any thread. `backend` and `constants` stand
        in for those of the part.
        """
        _, shapes, decisive = self._key(values)
        made_for, pool = backend or self._machine.backend, constants or self.constants
        host = made_for if made_for.backend_type is self._machine.host.backend_type else self._machine.host
        return self._planner(shapes, made_for, host, pool, decisive)

    def make(self, planner: Planner, values: Values) -> Iterator[str]:
        """Let a planner make the plan for these inputs layer by layer, and yield the name of each layer."""
        yield from planner.advance()
        self.keep(planner.made, values)

    def keep(self, plan: Plan, values: Values) -> None:
        """Keep a plan for these inputs."""
        key, shapes, decisive = self._key(values)
        self._keep(key, plan, self._sizes(shapes, decisive.values()))

    def adopt(self, missing: MissingConstant, storage: Storage) -> Storage:
        """Take storage in which a constant lies already, and return the storage of the constant."""
        return self.constants.adopt(self._machine.backend, missing, storage)

    @property
    def decisive(self) -> dict[str, Array | None]:
        """The inputs that decide shapes, with the values in the run that was last; None before a run."""
        return values_in(next(reversed(self._plans), None), self._decisive)

    def plan_ahead(self, values: Values) -> Iterator[str]:
        """Make the plan for these inputs if there is none, layer by layer, and yield the name of each layer. On a GPU
        that compiles programs and uploads weights.
        """
        machine, (key, shapes, decisive) = self._machine, self._key(values)
        sizes = self._sizes(shapes, decisive.values())
        self._begin_tracing(self.latest_plan)
        for _ in self._awaiting(key, sizes):
            yield self._tracing.layer
        if machine.backend is machine.host:  # a plan for the CPU takes no time worth dividing
            return
        if key in self._plans or self._fitted(key, sizes) is not None:
            return
        planner = self._planner(shapes, machine.backend, machine.host, self.constants, decisive)
        try:
            yield from planner.advance()
        except MemoryLimitError:
            if not self._plans:
                self.constants.free_after(0)
            raise
        if key in self._plans:  # a run between two steps has made one
            planner.made.release()
        else:
            self._keep(key, planner.made, sizes)

    def _key(self, values: Values) -> tuple[Any, Shapes, Mapping[Value, Array]]:
        """Return the key of the plan for these inputs, their shapes, and the inputs that decide shapes."""
        shapes = tuple([values[name].shape for name in self._names])
        if not self._decisive:
            return shapes, shapes, NO_VALUES
        decisive = {value: host_value(values[value.name]) for value in self._decisive}
        return key_of(shapes, decisive.values()), shapes, decisive

    def _sizes(self, shapes: Shapes, decisive: Iterable[Array]) -> Shapes | None:
        """Return the sizes that templates follow; None if no template may."""
        return None if self._templates is None else sizes_of(shapes, decisive)

    def _plan_for(self, values: Values) -> Plan:
        key, shapes, decisive = self._key(values)
        known = self._plans.next(key)
        self._begin_tracing(known or self.latest_plan)  # for a new shape too: where a state grows it never comes again
        if known is not None:
            return known
        sizes = self._sizes(shapes, decisive.values())
        for _ in self._awaiting(key, sizes):
            pass
        return self._fitted(key, sizes) or self._keep(key, self._made(shapes, decisive), sizes)

    def ready_plan(self, values: Values) -> Plan | None:
        """Return the plan for these inputs, which runs next; None if it must be made layer by layer."""
        key, shapes, decisive = self._key(values)
        return self._plans.next(key) or self._fitted(key, self._sizes(shapes, decisive.values()))

    def _awaiting(self, key: Any, sizes: Shapes | None) -> Iterator[None]:
        """Wait for a template that a job is making, if a state grows: no later run has the shapes of this one."""
        if self.grows and (last := self.latest_plan) is not None and key not in self._plans:
            yield from self._tracing.wait(lambda: self._fitted(key, sizes), WORTH_PLANS * last.nanoseconds / 1e9)

    def _fitted(self, key: Any, sizes: Shapes | None) -> Plan | None:
        """Return the plan of a template, or None if no template serves these sizes."""
        templates, backend = self._templates, self._machine.backend
        if templates is None or sizes is None:
            return None
        return self._plans.fit(key, lambda spare: templates.plan(sizes, backend, spare), self.grows)

    def _keep(self, key: Any, plan: Plan, sizes: Shapes | None) -> Plan:
        """Keep a plan that no template made."""
        self._made_plans += 1
        self._to_trace = sizes if self.follows(sizes) else None
        self._plans.move(plan, key)
        return plan

    def follows(self, sizes: Shapes | None) -> bool:
        """Whether a template may serve these sizes: the model leaves one open, and templates may be made."""
        return self._templates is not None and sizes is not None and self._templates.has_sizes(sizes)

    @property
    def losses(self) -> list[str]:
        """The lines of code that used a symbolic size as an int, so that another size needs a new plan."""
        return [] if self._templates is None else self._templates.losses

    def evict_all(self) -> None:
        """Evict all plans: the next run takes a template's plan, or is planned again."""
        self._plans.evict_all()

    def _begin_tracing(self, plan: Plan | None) -> None:
        """Begin to trace in a job, if planning took long compared with a run."""
        shapes, templates = self._to_trace, self._templates
        if shapes is None or plan is None or plan.is_provisional:  # its compilers need the cores
            return
        if templates is None or not templates.is_open:
            self._to_trace = None
        elif self._made_plans < 2 and (self.grows or not self._machine.backend.traces_early):
            return  # no other shape may ever come; and states that grow begin without rows, unlike later
        elif plan.is_costly and not templates.is_tracing and (self._made_plans >= MANY_PLANS or not plan.is_busy):
            self._to_trace = None
            templates.put_missing(self.constants, self._machine.backend)
            self._tracing.begin(partial(self._trace_in_job, shapes), self._machine.in_job)  # for other workers too

    def _trace_in_job(self, shapes: Shapes) -> None:
        try:
            self.trace(shapes)
        except Exception as error:  # no caller waits for the job, and planning still works
            log.warning(
                "layer %r cannot be followed to other sizes, so that each new input shape is planned again: %s: %s",
                *(self._tracing.layer, type(error).__name__, error),
            )

    def trace_now(self) -> None:
        """Trace the shapes that were planned last, if they are worth it, after a job that traces. Raises as `trace`."""
        while self._templates is not None and self._templates.is_tracing:
            sleep(0.001)
        while self._to_trace is not None and self._templates is not None:
            shapes, self._to_trace = self._to_trace, None
            self._templates.put_missing(self.constants, self._machine.backend)
            self.trace(shapes)

    def trace(self, shapes: Shapes) -> None:
        """Make templates from shapes like these. Raises the error of a layer that cannot be followed to other sizes."""
        templates, tracing = self._templates, self._tracing
        if templates and not templates.trace(shapes, self._followed, tracing, lambda: self._to_trace is not None):
            self._to_trace = shapes  # once the next run has put the constants there

    @uncollected()
    def _made(self, shapes: Shapes, decisive: Mapping[Value, Array] = NO_VALUES) -> Plan:
        """Make the plan for these input shapes. `decisive` holds the values of the inputs that decide shapes."""
        machine, begin, count = self._machine, perf_counter_ns(), self.constants.count
        try:
            plan = self._planner(shapes, machine.backend, machine.host, self.constants, decisive).plan()
        except MemoryLimitError:
            self.constants.free_after(count)
            raise
        plan.nanoseconds, plan.constants = perf_counter_ns() - begin, count
        return plan

    def _followed(self, sizes: Shapes, backend: Backend, constants: ConstantPool, at: Callable[[str], None]) -> Plan:
        """Make a plan for followed sizes. It shares no storage with the plans that run."""
        shapes, numbers = sizes[: len(self._names)], sizes[len(self._names) :]
        by_input = dict(zip(self.model.inputs, shapes, strict=True))
        decisive = {
            value: traced_values(value.dtype, by_input[value], row)
            for value, row in zip(self._decisive, numbers, strict=True)
        }
        return self._planner(shapes, backend, backend, constants, decisive, at).plan()

    def _planner(
        self,
        shapes: Shapes,
        backend: Backend,
        host: Backend,
        constants: ConstantPool,
        decisive: Mapping[Value, Array],
        at: Callable[[str], None] | None = None,
    ) -> Planner:
        specs = {
            value: PartialTensor(value.dtype, DynamicTensorShape(shape), decisive.get(value))
            for value, shape in zip(self.model.inputs, shapes, strict=True)
        }
        analysis = Analysis(self.model, constants.known, specs, self._machine.evaluate, self._signatures, at)
        return Planner(self.model, backend, host, constants, analysis, self._machine.strict, at, self._carried)

    def held(self, seen: set[int]) -> tuple[int, int, int]:
        """The bytes of its weights, of the plan that ran last, and of all others, apart from objects in `seen`."""
        weights = self.constants.held(seen)
        plan, others = self._plans.held(seen)
        return weights, plan, others + (self._templates.held_bytes(seen) if self._templates else 0)

    @property
    def oldest(self) -> int | None:
        """When the oldest plan that may go was used; None if none may."""
        return self._plans.oldest

    def drop_oldest(self) -> bool:
        """Drop that plan. Return whether there was one."""
        found = self._plans.drop_oldest()
        self._machine.backend.free_spare()
        return found

    def free_spare(self) -> None:
        """Free the memory that its plans keep for readbacks, and plans that waited for runs."""
        self._plans.free_spare()

    @property
    def memory_use(self) -> MemoryUse:
        """The memory of the part with the plans that it has now."""
        largest = max(self._plans.values(), key=lambda plan: plan.workspace_bytes, default=None)
        size, live = (largest.workspace_bytes, largest.live()) if largest else (0, [])
        return MemoryUse(*self.constants.bytes_used, size, live, self.constants.stay_whole(self._machine.backend))

    @property
    def latest_plan(self) -> Plan | None:
        """The plan that ran last."""
        return self._plans.last

    @property
    def settled_plan(self) -> Plan | None:
        """The plan that ran last, if input shapes alone decide about it, and no template is to be made. Where a state
        grows, it is a template's, and `refit` gives it other shapes.
        """
        may_trace = self._to_trace is not None and (self._made_plans > 1 or self._machine.backend.traces_early)
        last = self._plans.last
        return None if self._decisive or may_trace or (self.grows and not isinstance(last, FittedPlan)) else last

    def refit(self, plan: Plan, values: Values) -> bool:
        """Give the plan that ran last the shapes of these inputs. Return False if it cannot serve them now."""
        templates, shapes = self._templates, [values[name].shape for name in self._names]
        if templates is None or not templates.refit(plan, shapes, self._machine.backend):
            return False
        self._plans.hide(plan)
        return True

    @property
    def latest_sizes(self) -> Shapes | None:
        """The input shapes of the last run and the numbers that decide shapes; None if these cannot be followed."""
        shapes = () if self.latest_plan is None else self.latest_plan.input_shapes
        return self._sizes(shapes, [x for x in self.decisive.values() if x is not None])

    def report(self, repeats: int) -> list[StepReport]:
        """The steps of the plan that ran last, each timed in `repeats` more runs. No run is under way."""
        plan = self.latest_plan
        return [] if plan is None else steps_of(self.model, plan.input_shapes, plan.segments, repeats)

    def planned_parts(self) -> Iterator[PlannedPart]:
        """Yield this part."""
        yield self

    def plans(self) -> Iterator[Plan]:
        """Yield the plans that it has now, those to be freed among them."""
        yield from (*self._plans.values(), *self._plans.evicted)

    def releasing(self) -> Iterator[None]:
        """Free plans and constants, one at each step. No run may be under way."""
        if self._templates is not None:
            self._templates.users.discard(self)
        self._templates = None
        for plan in self._plans.taken():
            plan.release()
            yield
        yield from self.constants.releasing()
