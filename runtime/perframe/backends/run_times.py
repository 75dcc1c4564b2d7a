"""The times of a program's last runs. A run notes them in a moment; they are worked out when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from perframe.backends.protocol import KEPT, TimedRun


class RunTimes:
    """The last timed runs, until they are taken, and the shortest time of each step.

    It keeps as many stamps as `KEPT` whole runs have: a divided run has up to twice as many as a whole one.
    """

    def __init__(self, steps: int) -> None:
        self._shortest = np.full(steps, np.inf)
        self._most = KEPT * (steps + 1)
        self._runs: list[TimedRun] = []
        self._count = 0  # of their stamps

    def add(self, begin: int, stamps: NDArray[np.float64]) -> None:
        """Add runs of the steps from `begin` on: (runs, steps + 1) nanoseconds. What was not measured is NaN."""
        width = stamps.shape[1]
        shortest = self._shortest[begin : begin + width - 1]
        np.fmin(shortest, np.fmin.reduce(np.diff(stamps), axis=0) / 1e9, out=shortest)
        self._runs.extend([TimedRun(begin, row) for row in stamps])
        self._count += stamps.size
        while self._count > self._most and self._runs:
            self._count -= len(self._runs.pop(0).stamps)

    def take(self) -> list[TimedRun]:
        """Return the runs since the last call, and forget them."""
        taken, self._runs, self._count = self._runs, [], 0
        return taken

    def shortest(self) -> list[float]:
        """The shortest time of each step in seconds, infinite before the first."""
        found: list[float] = self._shortest.tolist()
        return found


class StampWords:
    """Words for the stamps of one run after the other. Words that were written stay, as long as somebody holds them."""

    def __init__(self, steps: int, words: int = 1) -> None:
        """A stamp of `words` words for each of `steps` steps, and one for the end of a run."""
        self._size, self._words = KEPT * (steps + 1), words
        self._first = self._size  # the first free one
        self.stamps = np.zeros((0, words), np.int64)

    def begin(self, count: int) -> int:
        """Return the index in `stamps` of the first of `count` consecutive free ones."""
        if self._first + count > self._size:
            self.stamps, self._first = np.zeros((self._size, self._words), np.int64), 0
        return self._first

    def keep(self, count: int) -> None:
        """Keep `count`, from the first free one on: the run that writes them has ended."""
        self._first += count


def alike(runs: Iterable[tuple[int, NDArray[np.int64]]]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Join runs of the same steps that follow each other: (runs, steps + 1, ...). Each has its first step."""
    for (begin, _), some in groupby(runs, key=lambda run: (run[0], len(run[1]))):
        yield begin, np.stack([stamps for _, stamps in some])
