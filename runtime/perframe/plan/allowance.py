"""The milliseconds that a run may take in a frame, and what steps are expected to take of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

SMOOTHING = 0.3  # the share of a new measurement in what a step is expected to take
FIRST_PARTS = 32  # a step that has not run before is tried with such a part of its rows

Position = tuple[int, int]  # a step of a segment, and the first of its rows that has not run


class Spent(float):
    """The milliseconds that a run took in one frame. `longest` is the layer of the piece that took most of them, and
    `longest_ms` its milliseconds. `is_last` says whether the run is over.
    """

    longest: str
    longest_ms: float
    is_last: bool = False


@dataclass
class Allowance:
    """The seconds that a run may take until it gives the frame back."""

    seconds: float
    spent: float = 0.0
    longest: str = ""
    longest_seconds: float = 0.0

    @property
    def left(self) -> float:
        """The seconds that are left in this frame."""
        return self.seconds - self.spent

    @property
    def is_spent(self) -> bool:
        """Whether the run must give the frame back."""
        return self.spent >= self.seconds

    def spend(self, seconds: float, what: str) -> None:
        """Note what a piece of the run took."""
        self.spent += seconds
        if seconds >= self.longest_seconds:
            self.longest, self.longest_seconds = what, seconds

    def refill(self) -> Spent:
        """Begin another frame. Returns what the last one took."""
        taken = Spent(self.spent * 1000)
        taken.longest, taken.longest_ms = self.longest, self.longest_seconds * 1000
        self.spent = self.longest_seconds = 0.0
        self.longest = ""
        return taken


class StepCosts:
    """What each step of a segment is expected to take, in seconds; infinite before the step has run."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def end_of(self, begin: int, count: int, left: float) -> int:
        """The end of the steps that fit into so many seconds, from `begin` on and of `count` in all: at least one."""
        self._begin(count)
        total, end = self.seconds[begin], begin + 1
        while end < count and total + self.seconds[end] <= left:
            total += self.seconds[end]
            end += 1
        return end

    def rows_of(self, step: int, row: int, rows: int, count: int, left: float) -> int | None:
        """How many rows of a step fit into so many seconds, from `row` on: at least one. None if the whole step fits,
        or cannot be divided.
        """
        self._begin(count)
        expected = self.seconds[step]
        if rows == 1 or (row == 0 and expected <= left):
            return None
        if not math.isfinite(expected):
            return min(rows - row, -(-rows // FIRST_PARTS))
        return min(rows - row, max(1, int(left * rows / expected))) if expected > 0 else rows - row

    def learn(self, begin: int, end: int, measured: float) -> None:
        """Note what steps took together: each is expected to take the share of it that was expected before."""
        expected = sum(self.seconds[begin:end])
        if not math.isfinite(expected) or expected <= 0:
            self.seconds[begin:end] = [measured / (end - begin)] * (end - begin)
            return
        factor = 1 + SMOOTHING * (measured / expected - 1)
        self.seconds[begin:end] = [cost * factor for cost in self.seconds[begin:end]]

    def learn_rows(self, step: int, row: int, some: int, rows: int, measured: float) -> None:
        """Note what some rows of a step took."""
        whole, expected = measured * rows / some, self.seconds[step]
        known = math.isfinite(expected) and (row or some < rows)
        self.seconds[step] = expected + SMOOTHING * (whole - expected) if known else whole

    def _begin(self, count: int) -> None:
        if not self.seconds:
            self.seconds = [math.inf] * count


class Stopwatch:
    """Measures seconds by the system's clock."""

    def __init__(self) -> None:
        self._begin = perf_counter()

    def lap(self) -> float:
        """The seconds since the last lap."""
        begin, self._begin = self._begin, perf_counter()
        return self._begin - begin
