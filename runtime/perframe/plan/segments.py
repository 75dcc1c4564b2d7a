"""The segments of a plan: consecutive steps on one backend, or a transfer between two backends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.operand import Operand
from perframe.backends.protocol import KEPT, Access, Backend, Program, Step, TimedProgram, TimedRun
from perframe.plan.allowance import Allowance, Position, StepCosts, Stopwatch
from perframe.tensor import BackendType, Storage
from perframe.tensor.readback import FrameState

Array = NDArray[Any]


@dataclass
class Segment:
    """Consecutive steps on one backend. `access` names the lasting storage that they read and write."""

    backend: Backend
    steps: list[Step] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    access: Access = field(default_factory=Access)
    program: Program | None = None
    costs: StepCosts = field(default_factory=StepCosts)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def backend_type(self) -> BackendType:
        """Where the steps run."""
        return self.backend.backend_type

    def run_whole(self) -> None:
        """Submit all steps."""
        assert self.program is not None
        self.backend.submit(self.program, 0, len(self.steps), self.access)

    def spend(self, at: Position, allowance: Allowance) -> Position:
        """Run as many whole steps as the allowance covers, or some rows of one step. Waits for them, and returns the
        next position.
        """
        assert self.program is not None
        step, row = at
        rows, count = self.program.rows(step), len(self.steps)
        some = self.costs.rows_of(step, row, rows, count, allowance.left)
        if some is not None:
            seconds = self.backend.measure(self.program, step, step + 1, self.access, (row, some))
            self.costs.learn_rows(step, row, some, rows, seconds)
            after = (step, row + some) if row + some < rows else (step + 1, 0)
        else:
            end = self.costs.end_of(step, count, allowance.left)
            seconds = self.backend.measure(self.program, step, end, self.access)
            self.costs.learn(step, end, seconds)
            after = end, 0
        allowance.spend(seconds, self.layers[step])
        return after

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed runs since the last call, if the backend times steps. `wait` blocks for a GPU's times."""
        return self.program.take_runs(wait) if isinstance(self.program, TimedProgram) else []

    def run(self, begin: int, end: int) -> None:
        """Submit some of the steps."""
        assert self.program is not None
        self.backend.submit(self.program, begin, end, self.access)


class Transfer:
    """Moves a value from one backend to another. A transfer from a GPU blocks; the planner has reported it."""

    backend_type = BackendType.CPU  # it passes through host memory

    def __init__(self, name: str, source: Operand, target: Operand, backend: Backend) -> None:
        self.layers = [f"transfer of {name}"]
        self._value = source
        self.source = self._planned = source.storage
        self._to = target.storage
        self._backend = backend  # the worker's, which says whether steps are timed
        self._runs: deque[TimedRun] = deque(maxlen=KEPT)

    def __len__(self) -> int:
        return 1

    def run_whole(self) -> None:
        """Download the value from its backend, and upload it to the other."""
        if self.source.backend_type != "cpu":
            FrameState.blocking(self.layers[0])
        begin = perf_counter_ns()
        self._to.upload(self.source.download(self._value.shape, self._value.dtype))
        if self._backend.times_steps:
            self._runs.append(TimedRun(0, np.array([begin, perf_counter_ns()], np.float64)))

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed transfers since the last call."""
        taken = list(self._runs)
        self._runs.clear()
        return taken

    def spend(self, at: Position, allowance: Allowance) -> Position:
        """Run the transfer, and wait for it."""
        watch = Stopwatch()
        self.run_whole()
        allowance.spend(watch.lap(), self.layers[0])
        return 1, 0

    def run(self, begin: int, end: int) -> None:
        """Run the transfer, which is one step."""
        self.run_whole()

    def replace(self, planned: Storage, new: Storage) -> None:
        """Read from `new` if the planned source is `planned`."""
        if self._planned is planned:
            self.source = new
