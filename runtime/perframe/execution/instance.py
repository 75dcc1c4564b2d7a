"""A model on the backend of a worker: everything that a worker exchanges when it swaps models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import Any

from perframe.backends.precision import Precision
from perframe.backends.protocol import Guarding
from perframe.execution.growing import Capacity
from perframe.execution.inputs import Inputs
from perframe.execution.layer_check import LayerCheck
from perframe.execution.machine import Machine, Values, open_machine
from perframe.execution.memory import WorkerMemory
from perframe.execution.outputs import Outputs
from perframe.execution.parts import Parts
from perframe.execution.repeat import Repeats
from perframe.execution.states import States
from perframe.graphics import GLContext
from perframe.ir import Model
from perframe.plan.plan import Plan
from perframe.plan.segments import Segment
from perframe.safety.records import dataclass
from perframe.tensor import BackendType


@dataclass(frozen=True)
class WorkerSettings:
    """The settings of a worker, which hold for each of its models."""

    backend_type: BackendType
    ctx: GLContext | None
    precision: Precision
    strict: bool
    check: LayerCheck | None
    cast: bool
    carry: Mapping[str, str]
    carry_capacity: Capacity

    def machine(self) -> Machine:
        """Open the backend, in the thread of its context. Raises BackendError."""
        return open_machine(self.backend_type, self.ctx, self.precision, self.strict, self.check)


class Instance:
    """A model, and its parts, states, inputs and outputs on one machine."""

    def __init__(self, model: Model, settings: WorkerSettings, machine: Machine) -> None:
        if model.check_file is not None:
            model.check_file()
        self.model, self.settings = model, settings
        self.backend, self.host, self.check = machine.backend, machine.host, machine.check
        self.guarded = self.backend.guarded if isinstance(self.backend, Guarding) else None
        self.states = States(model, settings.carry, machine, settings.cast, settings.carry_capacity)
        self.outputs = Outputs(model, self.states.targets, self.backend, self.host, self.states.in_file_order)
        self.parts = Parts(model, machine, self.outputs.targets, self.states.layouts)
        self.inputs = Inputs(model, settings.cast, self.states.sources)
        self._memory: WorkerMemory | None = None  # while a worker has it
        self._repeats = Repeats(self.parts, self.inputs, self.states, self.outputs)

    def belong_to(self, lock: RLock | None) -> None:
        """Count its memory as that of the worker with this lock, and let its older plans go where others need memory;
        None ends that.
        """
        self._memory = lock and WorkerMemory(self.model.name, lock, self.backend, self.parts, self.states)

    def entered(self) -> AbstractContextManager[Any]:
        """The block in which steps of a run may be taken one by one."""
        return nullcontext() if self.guarded is None else self.guarded()

    def repeat_run(self, inputs: tuple[Any, ...]) -> bool:
        """Submit a run like the last two. Return False, and change nothing, if it is not like them."""
        if self.guarded is None or not self._repeats.may_run:
            return self._repeats.run(inputs)
        with self.guarded():
            done = self._repeats.run(inputs)
        self.backend.flush()
        return done

    def run_whole(self, values: Values) -> None:
        """Submit a run."""
        if self.guarded is None:
            self.parts.run_whole(values)
        else:
            with self.guarded():
                self.parts.run_whole(values)

    def end_run(self, values: Values) -> None:
        """Keep the outputs of a run, and note how to begin the next one if it is like this one and that before it."""
        self.outputs.keep(values)
        if self.check is None:
            self._repeats.note(values)

    def plans(self) -> Iterator[Plan]:
        """Yield the plans that it has now."""
        for part in self.parts.planned_parts():
            yield from part.plans()

    @property
    def is_busy(self) -> bool:
        """Whether a run is under way or has its inputs already, or anything still reads its outputs."""
        return any(plan.is_busy for plan in self.plans())

    def take_over(self, old: Instance) -> tuple[str, ...]:
        """Take what callers gave the old model, its states, and the times of its steps where the layers are the same.
        Returns the names of states that do not fit, which begin again. Raises InputError.
        """
        self.inputs.take_over(old.inputs)
        self.outputs.take_over(old.outputs)
        with self.entered():
            reset = self.states.take_over(old.states)
        self.backend.times_steps, self.host.times_steps = old.backend.times_steps, old.host.times_steps
        for mine, other in zip(self.parts.planned_parts(), old.parts.planned_parts(), strict=False):
            plans = mine.latest_plan, other.latest_plan
            for one, another in zip(*(() if plan is None else plan.segments for plan in plans), strict=False):
                if isinstance(one, Segment) and isinstance(another, Segment):
                    one.expect(another)
        return reset

    def releasing(self) -> Iterator[None]:
        """Free everything, a bit at each step. No run may be under way."""
        self.outputs.forget()
        self._repeats.forget()
        yield from self.parts.releasing()
        self.states.release()
        self.backend.free_dropped()

    def release(self) -> None:
        """Free everything. No run may be under way."""
        for _ in self.releasing():
            pass
