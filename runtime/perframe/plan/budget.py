"""The milliseconds that a run may take in a frame, and what steps are expected to take of them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from time import perf_counter

SMOOTHING = 0.3  # the share of a new measurement in what a step is expected to take
FIRST_PARTS = 32  # a step that has not run before is tried with such a part of its rows
LEAST_PARTS = 8  # a step is not divided for less than such a part of the frame's milliseconds: each piece costs a wait

Position = tuple[int, int]  # a step of a segment, and the first of its rows that has not run
Piece = tuple[int, int] | int  # some rows of a step, as the first and their number; or the end of whole steps


class Spent(float):
    """The milliseconds that a run takes in one frame: measured, or expected where a GPU has not reported yet. `longest`
    is the layer of the longest piece that was measured since the last frame, or is expected in this one, and
    `longest_ms` its milliseconds. `is_last` says whether the run is over.
    """

    longest: str
    longest_ms: float
    is_last: bool = False


_slices = itertools.count()


@dataclass
class Budget:
    """The seconds that a run may take in a frame. `slice` numbers the frames."""

    seconds: float
    spent: float = 0.0
    longest: str = ""
    longest_seconds: float = 0.0
    slice: int = field(default_factory=_slices.__next__)

    @property
    def left(self) -> float:
        """The seconds that are left in this frame."""
        return self.seconds - self.spent

    @property
    def is_spent(self) -> bool:
        """Whether the run must stop for this frame."""
        return self.spent >= self.seconds

    def spend(self, seconds: float, what: str) -> None:
        """Note what a piece of the run took."""
        self.spent += seconds
        self.note(seconds, what)

    def note(self, seconds: float, what: str) -> None:
        """Note what a piece took whose seconds are counted already."""
        if seconds >= self.longest_seconds:
            self.longest, self.longest_seconds = what, seconds

    def refill(self) -> Spent:
        """Begin another frame. Returns what the last one took."""
        self.slice = next(_slices)
        taken = Spent(self.spent * 1000)
        taken.longest, taken.longest_ms = self.longest, self.longest_seconds * 1000
        self.spent = self.longest_seconds = 0.0
        self.longest = ""
        return taken


class StepCosts:
    """What each step of a segment is expected to take, in seconds; infinite before the step has run."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.error = 0.0  # the usual difference of what a piece takes from what is expected, as a share of that

    def piece(self, at: Position, rows: int, count: int, budget: Budget) -> Piece | None:
        """What of the `count` steps fits into the rest of the frame, from `at` on, where a step of `rows` rows waits.
        None if nothing fits: the frame's first piece runs in any case.
        """
        if not self.seconds:
            self.seconds = [math.inf] * count
        (step, row), is_first = at, budget.spent == 0
        expected, left = self.seconds[step], budget.left / (1 + 2 * self.error)
        if row == 0 and expected <= left:
            return self._end_of(step, count, left)
        if not math.isfinite(expected):
            if not is_first and budget.left < budget.seconds / 2:
                return None
            return step + 1 if rows == 1 else (row, min(rows - row, -(-rows // FIRST_PARTS)))
        if rows == 1:
            return step + 1 if is_first else None
        if expected * (rows - row) <= left * rows:
            return row, rows - row
        some = int(left * rows / expected)
        if is_first:
            return row, max(some, 1)
        return (row, some) if some * expected * LEAST_PARTS >= rows * budget.seconds else None

    def expected(self, step: int, piece: Piece, rows: int) -> float:
        """The expected time of a piece that begins with `step`, a step of `rows` rows."""
        if isinstance(piece, int):
            return sum(self.seconds[step:piece])
        return self.seconds[step] * piece[1] / rows

    def learn_piece(self, step: int, piece: Piece, rows: int, measured: float) -> None:
        """Note what a piece took."""
        if isinstance(piece, int):
            self.learn(step, piece, measured)
        else:
            self.learn_rows(step, piece[1], rows, measured)

    def _end_of(self, begin: int, count: int, left: float) -> int:
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
        self._note(measured / expected)
        factor = 1 + SMOOTHING * (measured / expected - 1)
        self.seconds[begin:end] = [cost * factor for cost in self.seconds[begin:end]]

    def learn_rows(self, step: int, some: int, rows: int, measured: float) -> None:
        """Note what some rows of a step took."""
        whole, expected = measured * rows / some, self.seconds[step]
        if not math.isfinite(expected) or expected <= 0:
            self.seconds[step] = whole
            return
        self._note(whole / expected)
        self.seconds[step] = expected + SMOOTHING * (whole - expected)

    def _note(self, ratio: float) -> None:
        """Note what a piece took, as a share of what was expected. One hold-up counts as no more than a doubling."""
        self.error += SMOOTHING * (min(abs(ratio - 1), 1.0) - self.error)


class Stopwatch:
    """Measures seconds by the system's clock."""

    def __init__(self) -> None:
        self._begin = perf_counter()

    def lap(self) -> float:
        """The seconds since the last lap."""
        begin, self._begin = self._begin, perf_counter()
        return self._begin - begin
