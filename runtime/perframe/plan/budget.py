"""The milliseconds that a run may take in a frame, and the expected time of each step."""

from __future__ import annotations

import itertools
import math
from dataclasses import field
from time import perf_counter

from perframe.safety.records import dataclass

SMOOTHING = 0.3  # the weight of a new measurement in the expected time of a step
FIRST_PARTS = 32  # the first submission of a step that has never run has 1/32 of its rows
LEAST_PARTS = 8  # a step is not divided for less than 1/8 of the frame's milliseconds: each submission costs a wait

Position = tuple[int, int]  # a step of a segment, and the first of its rows that has not run
Submission = tuple[int, int] | int  # a part of a run: (first row, rows) of one step, or the end of whole steps


class Spent(float):
    """The milliseconds that a run takes in one frame: measured, or expected where a GPU has not reported yet. `longest`
    is the layer of the longest submission that was measured since the last frame, or is expected in this one, and
    `longest_ms` its milliseconds. `is_last` says whether the run is over.
    """

    longest: str
    longest_ms: float
    is_last: bool = False


_frames = itertools.count()


@dataclass
class Budget:
    """The seconds that a run may take in a frame. `frame` numbers the frames."""

    seconds: float
    spent: float = 0.0
    longest: str = ""
    longest_seconds: float = 0.0
    frame: int = field(default_factory=_frames.__next__)

    @property
    def left(self) -> float:
        """The seconds that are left in this frame."""
        return self.seconds - self.spent

    @property
    def is_spent(self) -> bool:
        """Whether the run must stop for this frame."""
        return self.spent >= self.seconds

    def spend(self, seconds: float, what: str) -> None:
        """Count the seconds of a submission."""
        self.spent += seconds
        self.note(seconds, what)

    def note(self, seconds: float, what: str) -> None:
        """Note the seconds of a submission that is counted already."""
        if seconds >= self.longest_seconds:
            self.longest, self.longest_seconds = what, seconds

    def refill(self) -> Spent:
        """Begin another frame. Returns the time used in the last one."""
        self.frame = next(_frames)
        taken = Spent(self.spent * 1000)
        taken.longest, taken.longest_ms = self.longest, self.longest_seconds * 1000
        self.spent = self.longest_seconds = 0.0
        self.longest = ""
        return taken


class StepCosts:
    """The expected seconds of each step of a segment; infinite before the step has run."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.error = 0.0  # the usual difference between measured and expected seconds, relative to the expected ones

    def next(self, at: Position, rows: int, count: int, budget: Budget) -> Submission | None:
        """Return the next submission, which fits into the rest of the frame. It begins at `at`, in a step of `rows`
        rows; the segment has `count` steps. None if nothing fits: only the frame's first submission runs in any case.
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

    def expected(self, step: int, submission: Submission, rows: int) -> float:
        """The expected seconds of a submission that begins with `step`, a step of `rows` rows."""
        if isinstance(submission, int):
            return sum(self.seconds[step:submission])
        return self.seconds[step] * submission[1] / rows

    def learn(self, step: int, submission: Submission, rows: int, measured: float) -> None:
        """Learn from the measured seconds of a submission."""
        if isinstance(submission, int):
            self.learn_steps(step, submission, measured)
        else:
            self.learn_rows(step, submission[1], rows, measured)

    def _end_of(self, begin: int, count: int, left: float) -> int:
        total, end = self.seconds[begin], begin + 1
        while end < count and total + self.seconds[end] <= left:
            total += self.seconds[end]
            end += 1
        return end

    def learn_steps(self, begin: int, end: int, measured: float) -> None:
        """Learn from the seconds of several steps together. Their expected seconds keep their ratios."""
        expected = sum(self.seconds[begin:end])
        if not math.isfinite(expected) or expected <= 0:
            self.seconds[begin:end] = [measured / (end - begin)] * (end - begin)
            return
        self._note(measured / expected)
        factor = 1 + SMOOTHING * (measured / expected - 1)
        self.seconds[begin:end] = [cost * factor for cost in self.seconds[begin:end]]

    def learn_rows(self, step: int, some: int, rows: int, measured: float) -> None:
        """Learn from the seconds of some rows of a step."""
        whole, expected = measured * rows / some, self.seconds[step]
        if not math.isfinite(expected) or expected <= 0:
            self.seconds[step] = whole
            return
        self._note(whole / expected)
        self.seconds[step] = expected + SMOOTHING * (whole - expected)

    def _note(self, ratio: float) -> None:
        """Note the ratio of measured to expected seconds. A single stall counts as no more than a doubling."""
        self.error += SMOOTHING * (min(abs(ratio - 1), 1.0) - self.error)


class Stopwatch:
    """Measures seconds by the system's clock."""

    def __init__(self) -> None:
        self._begin = perf_counter()

    def lap(self) -> float:
        """The seconds since the last lap."""
        begin, self._begin = self._begin, perf_counter()
        return self._begin - begin
