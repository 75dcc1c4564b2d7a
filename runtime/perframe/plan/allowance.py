"""The milliseconds that a run may take in a frame, and what steps are expected to take of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

SMOOTHING = 0.3  # the share of a new measurement in what a step is expected to take


@dataclass
class Allowance:
    """The seconds that a run may take until it gives the frame back. `refill` begins the next frame's."""

    seconds: float
    spent: float = 0.0

    @property
    def left(self) -> float:
        """The seconds that are left in this frame."""
        return self.seconds - self.spent

    @property
    def is_spent(self) -> bool:
        """Whether the run must give the frame back."""
        return self.spent >= self.seconds

    def refill(self) -> float:
        """Begin another frame. Returns the milliseconds that the last one took."""
        spent, self.spent = self.spent, 0.0
        return spent * 1000


class StepCosts:
    """What each step of a segment is expected to take, in seconds; infinite before the step has run."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def end_of(self, begin: int, count: int, left: float) -> int:
        """The end of the steps that fit into so many seconds, from `begin` on and of `count` in all: at least one."""
        if not self.seconds:
            self.seconds = [math.inf] * count
        total, end = self.seconds[begin], begin + 1
        while end < count and total + self.seconds[end] <= left:
            total += self.seconds[end]
            end += 1
        return end

    def learn(self, begin: int, end: int, measured: float) -> None:
        """Note what steps took together: each is expected to take the share of it that was expected before."""
        expected = sum(self.seconds[begin:end])
        if not math.isfinite(expected) or expected <= 0:
            self.seconds[begin:end] = [measured / (end - begin)] * (end - begin)
            return
        factor = 1 + SMOOTHING * (measured / expected - 1)
        self.seconds[begin:end] = [cost * factor for cost in self.seconds[begin:end]]


class Stopwatch:
    """Measures seconds by the system's clock."""

    def __init__(self) -> None:
        self._begin = perf_counter()

    def lap(self) -> float:
        """The seconds since the last lap."""
        begin, self._begin = self._begin, perf_counter()
        return self._begin - begin
