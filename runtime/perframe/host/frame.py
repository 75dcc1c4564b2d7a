"""The source of a loop's time, the facts of a frame, and the timeline that computes them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral, Real
from time import perf_counter
from typing import Protocol

from perframe.errors import InputError


@dataclass(frozen=True, slots=True)
class Frame:
    """The facts of one frame. Times are in seconds, and do not change within a frame."""

    index: int
    """0 for the first frame."""
    time: float
    """The time from the beginning of the loop to the beginning of this frame."""
    delta_time: float
    """The time since the frame before; nearly 0 in the first frame. 0 while the app is paused."""
    fixed_delta_time: float
    """The time that one `fixed_update` stands for."""
    fixed_steps: int
    """The number of times that `fixed_update` runs in this frame."""
    fixed_alpha: float
    """The time since the last fixed step, in steps: from 0 to under 1. Use it to draw between two steps."""
    size: tuple[int, int]
    """Width and height of the surface in pixels."""
    budget_ms: float
    """The milliseconds of this frame that all schedules together may take, if they are pending at its beginning."""
    real_delta_time: float = field(default=0.0, compare=False)
    """The time since the frame before by the clock, whatever the time scale is."""


def is_number(value: object) -> bool:
    """Whether the value is a finite float."""
    return isinstance(value, Real) and math.isfinite(value)


class Timeline:
    """Turns the times of a clock into frames with zero or more fixed steps."""

    def __init__(self, clock: Clock, fixed_delta_time: float, max_fixed_steps: int) -> None:
        given = is_number(fixed_delta_time) and isinstance(max_fixed_steps, Integral)
        if not given or fixed_delta_time <= 0 or max_fixed_steps < 1:
            raise InputError(
                f"fixed_delta_time is {fixed_delta_time!r} and max_fixed_steps is {max_fixed_steps!r}: "
                "the first must be above 0 seconds, the second an integer of at least 1"
            )
        can = callable(getattr(clock, "now", None)) and callable(getattr(clock, "tick", None))
        if isinstance(clock, type) or not can:
            raise InputError(f"{clock!r} is not a clock: derive from perframe.host.Clock, and define now()")
        self.clock = clock
        self.index = -1
        begin_time = getattr(clock, "begin_time", 0.0)
        self.time = begin_time
        self.scale = 1.0
        self.paused = False
        self.steps_once = False  # this frame alone runs, although the app is paused
        self._real_time, self._lost = begin_time, 0.0
        self._origin: float | None = None
        self._fixed_delta_time = fixed_delta_time
        self._max_fixed_steps = max_fixed_steps
        self._owed_steps = 0.0

    def tick(self, size: tuple[int, int], budget_ms: float) -> Frame:
        """Begin the next frame, and return its facts. Time counts from the first call, not from the loop's setup."""
        if self._origin is None:
            self._origin = self.clock.now() - self._real_time
        real_time = self.clock.tick() - self._origin
        real_delta_time = real_time - self._real_time
        self._real_time = real_time
        delta_time = self._scaled(real_delta_time)
        self.index += 1
        self.time = time = self.time + delta_time
        self._lost = real_time - time
        fixed_steps = self._take_fixed_steps(delta_time)
        return Frame(
            index=self.index,
            time=time,
            delta_time=delta_time,
            fixed_delta_time=self._fixed_delta_time,
            fixed_steps=fixed_steps,
            fixed_alpha=max(0.0, self._owed_steps),
            size=size,
            budget_ms=budget_ms,
            real_delta_time=real_delta_time,
        )

    def _scaled(self, real_delta_time: float) -> float:
        """The time that this frame stands for."""
        if self.paused:
            return self._fixed_delta_time if self.steps_once else 0.0
        if self.scale == 1:
            return self._real_time - self._lost - self.time  # so that rounding errors do not add up
        return real_delta_time * self.scale

    def _take_fixed_steps(self, delta_time: float) -> int:
        """Return the number of whole steps that are due, and keep the rest for later frames.

        Steps beyond `max_fixed_steps` are dropped. A loop that cannot keep up slows its simulation down; otherwise it
        would run ever more steps in ever longer frames.
        """
        self._owed_steps += delta_time / self._fixed_delta_time
        # A frame of exactly one step must take one, even if rounding makes it slightly shorter.
        whole = math.floor(self._owed_steps + 1e-6)
        self._owed_steps -= whole
        return min(whole, self._max_fixed_steps)


class TimeControls:
    """The part of an app that makes its time go slower, stand still, or continue step by step."""

    _timeline: Timeline

    @property
    def time_scale(self) -> float:
        """Seconds of `frame.time` for a second of the clock: 0.5 is slow motion. Raises InputError below 0."""
        return self._timeline.scale

    @time_scale.setter
    def time_scale(self, scale: float) -> None:
        if not is_number(scale) or scale < 0:
            raise InputError(f"time_scale is a number of at least 0, and got {scale!r}")
        self._timeline.scale = float(scale)

    @property
    def paused(self) -> bool:
        """Whether time stands still: only `on_event` and `render` are called, and no task continues."""
        return self._timeline.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._timeline.paused = bool(paused)

    def step(self) -> None:
        """Pause, and let the next frame run as if it took `fixed_delta_time`."""
        self._timeline.paused = self._timeline.steps_once = True


class Clock(Protocol):
    """A source of time. Derive from it and define `now`."""

    begin_time: float = 0.0
    """The `frame.time` at which a loop begins: that of a part of a film, for example."""

    def now(self) -> float:
        """The time in seconds from any beginning; it never goes back."""
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
