"""The source of a loop's time. It is injected, so that a test or a recording can control it."""

from __future__ import annotations

from time import perf_counter
from typing import Protocol


class Clock(Protocol):
    """A source of time. Derive from it and define `now`."""

    begin_time: float = 0.0
    """The `frame.time` at which a loop begins: that of a part of a film, for example."""

    def now(self) -> float:
        """The time in seconds from any origin; it never goes back."""
        ...

    def tick(self) -> float:
        """The time in seconds at which a frame begins; the loop asks once a frame."""
        return self.now()


class SystemClock(Clock):
    """The real time."""

    def now(self) -> float:
        """Seconds of `time.perf_counter`."""
        return perf_counter()


class ManualClock(Clock):
    """A clock that moves only by commands: every frame takes exactly `step` seconds, and `advance` adds more.

    Use it for tests, and for recordings that must look the same however long their frames take to draw. Work takes no
    time by this clock, so the budget never cuts short a schedule that advances by it.
    """

    def __init__(self, step: float = 0.0) -> None:
        self.step = step
        self._now = 0.0

    def now(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    def tick(self) -> float:
        """Advance by `step` and return the time in seconds."""
        self.advance(self.step)
        return self._now

    def advance(self, seconds: float | None = None) -> None:
        """Advance by `seconds`, or by one `step`."""
        self._now += self.step if seconds is None else seconds
