"""What a worker tells about itself: its model, its memory, its kernels, and the times of its steps."""

from __future__ import annotations

import threading

from perframe.backends import kernel_progress
from perframe.errors import ClosedError, InputError
from perframe.execution.instance import Instance
from perframe.execution.parts import Parts
from perframe.execution.report import MemoryUse, StepReport, Steps
from perframe.execution.states import States
from perframe.ir import Model
from perframe.plan.plan import Fallback


class Inspected:
    """The part of a worker that tells about it."""

    _own: Instance
    _lock: threading.RLock
    _closed: bool

    @property
    def model(self) -> Model:
        """The model that it runs."""
        return self._own.model

    @property
    def parts(self) -> Parts:
        """The parts of the model, for tools that look at plans."""
        return self._own.parts

    @property
    def states(self) -> States:
        """The carried states."""
        return self._own.states

    @property
    def ready(self) -> bool:
        """Whether all requested kernels are compiled: until then, first results are late. Never blocks."""
        return self.progress == 1.0

    @property
    def progress(self) -> float:
        """The share of requested kernels that is compiled, from 0 to 1. It counts all workers of the process."""
        self._check_open()
        return kernel_progress()

    @property
    def memory_use(self) -> list[MemoryUse]:
        """The memory of each part of the model, with the plans made so far; most models are one part."""
        self._check_open()
        return self.parts.memory_use

    @property
    def fallbacks(self) -> list[Fallback]:
        """The layers of the last run that ran on the CPU instead of this worker's backend, each with the reason. Shape
        arithmetic, which always runs there, is not among them.
        """
        self._check_open()
        plans = [part.latest_plan for part in self.parts.planned_parts()]
        return [found for plan in plans if plan is not None for found in plan.fallbacks]

    def report(self, repeats: int = 0) -> list[StepReport]:
        """The steps that the last run ran, each with its layer, shapes, bytes and operations.

        With `repeats`, the steps run that many more times, and report their shortest time in seconds within a run, by
        the clock of the CPU or of the GPU. These runs may overwrite the outputs. Without `repeats`, they report their
        shortest time since `time_steps()`. A step in the body of a loop stands once. Layers between plans, which run on
        the host, have no steps. The call blocks. Raises ClosedError after release(), and InputError for a wrong number.
        """
        if not isinstance(repeats, int) or repeats < 0:
            raise InputError(f"report(repeats) takes an integer of at least 0, and got {repeats!r}")
        with self._lock:
            self._check_open()
            self._own.host.wait_for_jobs()
            return Steps(step for part in self.parts.planned_parts() for step in part.report(repeats))

    def time_steps(self, on: bool = True) -> bool:
        """Start or stop timing each step of each run; `report()` has the times. Return whether timing was on.

        Nothing waits for the times: those of a GPU are read some runs later. Raises ClosedError after release().
        """
        with self._lock:
            self._check_open()
            before, self._own.backend.times_steps = self._own.backend.times_steps, on
            self._own.host.times_steps = on
        return before

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the worker of {self.model.name} was released")
