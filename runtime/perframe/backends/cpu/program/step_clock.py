"""The times of a program's steps. Native code reads the core's counter before each of its steps; the system's clock,
read around them, tells how long a tick is.
"""

from __future__ import annotations

import math
from collections import deque
from time import perf_counter_ns

import numpy as np

from perframe.backends.protocol import TimedRun
from perframe.tensor.storage import address_of

KEPT = 64  # runs whose times nobody has taken


class StepClock:
    """Times the steps of one program. `ticks` is the address of the words into which native code writes, `shortest` has
    the shortest time of each step in seconds, and `runs` the last runs.
    """

    def __init__(self, steps: int) -> None:
        self._ticks = np.zeros(steps + 1, np.int64)
        self.ticks = address_of(self._ticks)
        self.shortest = [math.inf] * steps
        self.runs: deque[TimedRun] = deque(maxlen=KEPT)
        self._begin, self._stamps = 0, np.empty(0)
        self._since = 0

    def begin(self, first: int, end: int) -> None:
        """Begin a run of the steps from `first` up to `end`."""
        self._begin, self._stamps = first, np.full(end - first + 1, np.nan)
        self._since = perf_counter_ns()

    def note(self, first: int, last: int, native: bool) -> None:
        """Note that the steps from `first` up to `last` have run since the last note."""
        since, self._since = self._since, perf_counter_ns()
        stamps = self._stamps[first - self._begin : last - self._begin + 1]
        stamps[0], stamps[-1] = since, self._since
        ticks = self._ticks[first : last + 1]
        if native and ticks[-1] > ticks[0]:
            stamps[:] = since + (ticks - ticks[0]) * ((self._since - since) / (ticks[-1] - ticks[0]))

    def end(self) -> None:
        """End the run."""
        seconds = np.diff(self._stamps) / 1e9
        for index, taken in enumerate(seconds.tolist(), self._begin):
            if taken < self.shortest[index]:
                self.shortest[index] = taken
        self.runs.append(TimedRun(self._begin, self._stamps))

    def take_runs(self) -> list[TimedRun]:
        """Return the runs that have ended since the last call, and forget them."""
        taken = []
        while self.runs:
            taken.append(self.runs.popleft())
        return taken
