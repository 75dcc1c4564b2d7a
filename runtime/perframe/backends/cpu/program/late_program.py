"""A program whose kernels are still being compiled: `schedule` returns, and the job that runs it waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from perframe.backends.cpu.program.arena import Arena
from perframe.backends.cpu.program.program import CpuProgram, CpuStep, Rows
from perframe.backends.protocol import TimedRun
from perframe.tensor.storage import Storage


class LateProgram:
    """Makes a `CpuProgram` at its first run. Runs follow each other, and no operand is replaced during a run."""

    def __init__(self, steps: Sequence[CpuStep], arena: Arena) -> None:
        self.steps, self._arena = list(steps), arena
        self._made: CpuProgram | None = None
        self._replaced: list[tuple[Storage, Storage]] = []
        self.times_steps = False

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def nanoseconds(self) -> int | None:
        """The time of one run; None before the first."""
        return None if self._made is None else self._made.nanoseconds

    @property
    def is_brief(self) -> bool:
        """Whether a run takes less time than handing it to another thread."""
        return self._made is not None and self._made.is_brief

    def rows(self, index: int) -> int:
        """The number of a step's chunks; 1 before the first run."""
        return 1 if self._made is None else self._made.rows(index)

    def replace(self, planned: Storage, new: Storage) -> None:
        """Make all steps use `new` instead of the planned storage."""
        if self._made is not None:
            self._made.replace(planned, new)
        else:
            self._replaced.append((planned, new))

    def lend(self, planned: Storage, array: NDArray[Any]) -> None:
        """Make all steps read an array until the planned storage is replaced again. Only a brief run is lent arrays."""
        assert self._made is not None, "it has run"
        self._made.lend(planned, array)

    def run(self, begin: int, end: int, away: bool = False, rows: Rows | None = None) -> None:
        """Run some steps. The first run waits for the kernels."""
        if self._made is None:
            made = CpuProgram(self.steps, self._arena)
            for planned, new in self._replaced:
                made.replace(planned, new)
            self._made, self._replaced = made, []
        self._made.times_steps = self.times_steps
        self._made.run(begin, end, away, rows)

    def step_seconds(self, repeats: int) -> list[float] | None:
        """The shortest time of each step. Repeats wait for the kernels."""
        if self._made is None and repeats:
            self.run(0, len(self.steps))
        return None if self._made is None else self._made.step_seconds(repeats)

    def take_runs(self, wait: bool = False) -> list[TimedRun]:
        """Return the timed runs that have ended since the last call."""
        return [] if self._made is None else self._made.take_runs(wait)
