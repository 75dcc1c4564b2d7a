"""The segments of a plan: consecutive steps on one backend, or a transfer between two backends."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import field
from time import perf_counter_ns

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import KEPT, Access, Backend, Measured, Program, Step, TimedProgram, TimedRun
from perframe.plan.budget import FIRST_PARTS, Budget, Position, StepCosts, Stopwatch, Submission
from perframe.safety.records import dataclass
from perframe.tensor import BackendType, Storage
from perframe.tensor.frames import WITHIN_A_MODEL, current_frame

FRAMES_AHEAD = 3  # frames whose submissions a GPU may still have to finish
MAX_TIMED_PARTS = 1 << 14  # times of parts of steps that are kept until `take_runs`


@dataclass(frozen=True)
class _PendingSubmission:
    """A submission that a GPU has not finished yet."""

    work: Measured
    frame: int
    step: int
    submission: Submission
    rows: int
    begin: int  # nanoseconds of `perf_counter_ns`


@dataclass
class Segment:
    """Consecutive steps on one backend. `access` names the lasting storage that they read and write."""

    backend: Backend
    steps: list[Step] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    access: Access = field(default_factory=Access)
    program: Program | None = None
    costs: StepCosts = field(default_factory=StepCosts)
    _begun: deque[_PendingSubmission] = field(default_factory=deque)
    _timed_parts: deque[TimedRun] = field(default_factory=lambda: deque(maxlen=MAX_TIMED_PARTS))

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def backend_type(self) -> BackendType:
        """Where the steps run."""
        return self.backend.backend_type

    def run_whole(self) -> None:
        """Submit all steps."""
        for storage in self.access.writes:  # as in `run`, since a frame waits
            storage.changes += 1
        self.backend.submit(self.program, 0, len(self.steps), self.access)  # type: ignore[arg-type]  # it is planned

    def spend(self, at: Position, budget: Budget) -> Position:
        """Submit as many whole steps as the budget covers, or some rows of one step. Returns the next position: `at`
        if nothing fits into the rest of the frame, or if a GPU has not finished earlier frames.

        It waits for the CPU, and for steps that never ran. A GPU reports later.
        """
        assert self.program is not None
        if not self._learn(budget):
            return at
        step, rows = at[0], self.program.rows(at[0])
        submission = self.costs.next(at, rows, len(self.steps), budget)
        if submission is None:
            return at
        expected, provisional = self.costs.expected(step, submission, rows), self.program.is_provisional
        end, some = (submission, None) if isinstance(submission, int) else (step + 1, submission)
        wait, begin = not math.isfinite(expected), perf_counter_ns()
        self._note_changes()
        work = self.backend.measure(self.program, step, end, self.access, some, wait)
        seconds = work.seconds
        if seconds is None:
            self._begun.append(_PendingSubmission(work, budget.frame, step, submission, rows, begin))
            budget.spend(expected, self.layers[step])
        else:
            if not provisional:
                self._learn_from(step, submission, rows, seconds, begin)
            budget.spend(seconds, self.layers[step])
        return (end, 0) if some is None or sum(some) >= rows else (step, sum(some))

    def touch(self, step: int) -> None:
        """Submit a small part of a step."""
        assert self.program is not None
        rows = self.program.rows(step)
        some = None if rows == 1 else (0, -(-rows // FIRST_PARTS))
        self._note_changes()
        self.backend.measure(self.program, step, step + 1, self.access, some, wait=False)

    def expect(self, other: Segment) -> None:
        """Expect the times of another segment, if its steps are those of the same layers."""
        if self.layers == other.layers and other.costs.seconds:
            self.costs.seconds, self.costs.error = list(other.costs.seconds), other.costs.error

    def _learn(self, budget: Budget) -> bool:
        """Learn from submissions that have finished. Returns whether the GPU keeps up."""
        while self._begun:
            begun = self._begun[0]
            seconds = begun.work.seconds
            if seconds is None:
                return len({one.frame for one in self._begun} - {budget.frame}) < FRAMES_AHEAD
            self._learn_from(begun.step, begun.submission, begun.rows, seconds, begun.begin)
            budget.note(seconds, self.layers[begun.step])
            self._begun.popleft()
        return True

    def _learn_from(self, step: int, submission: Submission, rows: int, seconds: float, begin: int) -> None:
        """Learn from a submission. The program itself times whole steps only."""
        self.costs.learn(step, submission, rows, seconds)
        if self.backend.times_steps and not isinstance(submission, int):
            stamps = np.array([begin, begin + seconds * 1e9])
            self._timed_parts.append(TimedRun(step, stamps, (*submission, rows)))

    def _note_changes(self) -> None:
        for storage in self.access.writes:
            storage.changes += 1

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed runs since the last call, if the backend times steps. `wait` blocks for a GPU's times."""
        parts = [self._timed_parts.popleft() for _ in range(len(self._timed_parts))]
        return [*(self.program.take_runs(wait) if isinstance(self.program, TimedProgram) else []), *parts]

    def run(self, begin: int, end: int) -> None:
        """Submit some of the steps."""
        assert self.program is not None
        self._note_changes()
        self.backend.submit(self.program, begin, end, self.access)


class Transfer:
    """Moves a value from one backend to another. A transfer from a GPU blocks; the planner has reported it."""

    backend_type = BackendType.CPU  # it passes through host memory

    def __init__(self, name: str, source: Operand, target: Operand, backend: Backend) -> None:
        self.layers = [f"transfer of {name}"]
        self._value = source
        self.source = self._planned = source.storage
        self._to = self._planned_target = target.storage
        self._backend = backend  # the worker's, which says whether steps are timed
        self._runs: deque[TimedRun] = deque(maxlen=KEPT)

    def __len__(self) -> int:
        return 1

    def run_whole(self) -> None:
        """Download the value from its backend, and upload it to the other."""
        if self.source.backend_type != "cpu":
            current_frame().blocking(self.layers[0], WITHIN_A_MODEL)
        begin = perf_counter_ns()
        self._to.upload(self.source.download(self._value.shape, self._value.dtype))
        if self._backend.times_steps:
            self._runs.append(TimedRun(0, np.array([begin, perf_counter_ns()], np.float64)))

    def touch(self, step: int) -> None:
        """Run the transfer."""
        self.run_whole()

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed transfers since the last call."""
        taken = list(self._runs)
        self._runs.clear()
        return taken

    def spend(self, at: Position, budget: Budget) -> Position:
        """Run the transfer, and wait for it."""
        watch = Stopwatch()
        self.run_whole()
        budget.spend(watch.lap(), self.layers[0])
        return 1, 0

    def run(self, begin: int, end: int) -> None:
        """Run the transfer, which is one step."""
        self.run_whole()

    def replace(self, planned: Storage, new: Storage) -> None:
        """Use `new` instead of the planned source or target `planned`."""
        if self._planned is planned:
            self.source = new
        if self._planned_target is planned:
            self._to = new
