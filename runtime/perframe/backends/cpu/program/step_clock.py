"""The times of a program's steps. Native code reads the core's counter before each of its steps; the system's clock,
read around them, tells how long a tick is.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter_ns

import numpy as np
from numpy.typing import NDArray

from perframe.backends.protocol import KEPT, TimedRun
from perframe.tensor.storage import address_of

# the first step, the one after the last, the nanoseconds before and after, and the counter's ticks of native steps
Noted = tuple[int, int, int, int, NDArray[np.int64] | None]


class StepClock:
    """Times the steps of one program. `ticks` is the address of the words into which native code writes."""

    def __init__(self, steps: int) -> None:
        self._ticks = np.zeros(steps + 1, np.int64)
        self.ticks = address_of(self._ticks)
        self._shortest = np.full(steps, np.inf)
        self._runs: deque[TimedRun] = deque(maxlen=KEPT)
        self._noted: list[Noted] = []  # of the present run
        self._ended: list[list[Noted]] = []  # runs that are not worked out yet
        self._since = 0

    def begin(self) -> None:
        """Begin a run."""
        self._noted, self._since = [], perf_counter_ns()

    def note(self, first: int, last: int, native: bool) -> None:
        """Note that the steps from `first` up to `last` have run since the last note."""
        since, self._since = self._since, perf_counter_ns()
        self._noted.append((first, last, since, self._since, self._ticks[first : last + 1].copy() if native else None))

    def end(self) -> None:
        """End the run. Its times are worked out later: a frame waits now."""
        if self._noted:
            self._ended.append(self._noted)
        if len(self._ended) >= KEPT:
            self._work_out()

    def take_runs(self) -> list[TimedRun]:
        """Return the runs that have ended since the last call, and forget them."""
        self._work_out()
        taken = []
        while self._runs:
            taken.append(self._runs.popleft())
        return taken

    def shortest(self) -> list[float]:
        """The shortest time of each step in seconds, infinite before the first."""
        self._work_out()
        found: list[float] = self._shortest.tolist()
        return found

    def _work_out(self) -> None:
        ended, self._ended = self._ended, []
        for noted in ended:
            begin, end = noted[0][0], noted[-1][1]
            stamps = np.full(end - begin + 1, np.nan)
            for first, last, since, until, ticks in noted:
                part = stamps[first - begin : last - begin + 1]
                part[0], part[-1] = since, until
                if ticks is not None and ticks[-1] > ticks[0]:
                    part[:] = since + (ticks - ticks[0]) * ((until - since) / (ticks[-1] - ticks[0]))
            shortest = self._shortest[begin:end]
            np.fmin(shortest, np.diff(stamps) / 1e9, out=shortest)
            self._runs.append(TimedRun(begin, stamps))
