"""The times of a program's steps. Native code reads the core's counter before each of its steps; the system's clock,
read around them, tells how long a tick is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.protocol import KEPT, TimedRun
from perframe.backends.run_times import RunTimes, StampWords
from perframe.tensor.locks import new_lock
from perframe.tensor.storage import address_of

# the first step, the one after the last, the nanoseconds before and after, and whether native code ran them
Section = tuple[int, int, int, int, bool]


# a run that has ended: its first step, the one after the last, its sections, the ticks, and where its own begin
_Run = tuple[int, int, Sequence[Section], NDArray[np.int64], int]


class StepClock:
    """Times the steps of one program."""

    def __init__(self, steps: int) -> None:
        self._words = StampWords(steps)
        self._address = 0  # of the words for stamps
        self._times = RunTimes(steps)
        self._ended: deque[_Run] = deque()  # runs that are not worked out yet
        self._lock = new_lock()  # of those who take runs from there, and whose thread is not the one that runs
        self._sections: list[Section] = []  # of the present run
        self._since = self._begin = self._end = self._first = 0

    def begin(self, begin: int, end: int) -> int:
        """Begin a run of these steps. Return the address of the word into which native code writes the ticks before
        step 0, if that is among them; those before the next steps follow.
        """
        before = self._words.stamps
        self._begin, self._end, self._first = begin, end, self._words.begin(end - begin + 1)
        if self._words.stamps is not before:
            self._address = address_of(self._words.stamps)
        self._sections, self._since = [], perf_counter_ns()
        return self._address + 8 * (self._first - begin)

    def note(self, first: int, last: int, native: bool) -> None:
        """Note that the steps from `first` up to `last` have run since the last note."""
        now = perf_counter_ns()
        self._sections.append((first, last, self._since, now, native))
        self._since = now

    def end(self) -> None:
        """End the run. Its times are worked out later: a frame waits now."""
        self._ended.append((self._begin, self._end, self._sections, self._words.stamps, self._first))
        self._words.keep(self._end - self._begin + 1)
        if len(self._ended) >= KEPT:
            with self._lock:
                self._work_out()

    def take_runs(self) -> list[TimedRun]:
        """Return the runs that have ended since the last call, and forget them."""
        with self._lock:
            self._work_out()
            return self._times.take()

    def shortest(self) -> list[float]:
        """The shortest time of each step in seconds, infinite before the first."""
        with self._lock:
            self._work_out()
            return self._times.shortest()

    def _work_out(self) -> None:
        ended = [self._ended.popleft() for _ in range(len(self._ended))]  # others may end meanwhile
        for (begin, end, _), some in groupby(ended, key=_kind):
            runs = list(some)
            ticks, first, width = *runs[0][3:], end - begin + 1
            own = ticks[first : first + len(runs) * width].reshape(len(runs), width)
            self._times.add(begin, _stamps(begin, [run[2] for run in runs], own))


def _kind(run: _Run) -> tuple[int, int, int]:
    """What runs that follow each other have in common if their ticks do so too."""
    return run[0], run[1], id(run[3])


def _stamps(begin: int, runs: Sequence[Sequence[Section]], ticks: NDArray[np.int64]) -> NDArray[Any]:
    """The nanoseconds before each step and after the last: (runs, steps + 1)."""
    stamps = np.full(ticks.shape, np.nan)
    for sections in zip(*runs, strict=True):
        first, last, _, _, native = sections[0]
        part = stamps[:, first - begin : last - begin + 1]
        since, until = np.array([(one[2], one[3]) for one in sections], np.float64).T
        part[:, 0], part[:, -1] = since, until
        if native:
            passed = ticks[:, first - begin : last - begin + 1] - ticks[:, first - begin, np.newaxis]
            known = passed[:, -1] > 0  # a machine without a counter has no ticks
            length = (until - since)[known] / passed[known, -1]
            part[known] = since[known, np.newaxis] + passed[known] * length[:, np.newaxis]
    return stamps
