"""One tick's facts, and the timeline that makes them out of a clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from perframe.errors import InputError
from perframe.host.clock import Clock


@dataclass(frozen=True, slots=True)
class Frame:
    """What is known of one tick. Times are seconds; everything that runs in a frame sees the same ones."""

    index: int
    """0 for the first frame."""
    time: float
    """Since the loop began; a frame's hooks all see the time at which it began."""
    delta_time: float
    """Since the frame before; nearly 0 in the first one."""
    fixed_delta_time: float
    """What one `fixed_update` stands for."""
    fixed_steps: int
    """How many times `fixed_update` runs in this frame."""
    fixed_alpha: float
    """How far time has gone beyond the last fixed step: 0 to under 1 step. To draw between two steps."""
    size: tuple[int, int]
    """Width and height of what is drawn into, in pixels."""
    budget_ms: float
    """How many milliseconds of this frame the schedules that are pending at its beginning may take, all together."""


def is_number(value: object) -> bool:
    """Whether it is a number that time can be counted in."""
    return isinstance(value, Real) and math.isfinite(value)


class Timeline:
    """Turns the times that a clock gives into frames with a whole number of fixed steps."""

    def __init__(self, clock: Clock, fixed_delta_time: float, max_fixed_steps: int) -> None:
        given = is_number(fixed_delta_time) and is_number(max_fixed_steps)
        if not given or fixed_delta_time <= 0 or max_fixed_steps < 1:
            raise InputError(
                f"fixed_delta_time is {fixed_delta_time!r} and max_fixed_steps is {max_fixed_steps!r}: "
                "the first must be above 0 seconds, the second at least 1"
            )
        self.clock = clock
        self.index = -1
        self.time = 0.0
        self._origin: float | None = None
        self._fixed_delta_time = fixed_delta_time
        self._max_fixed_steps = max_fixed_steps
        self._owed_steps = 0.0

    def tick(self, size: tuple[int, int], budget_ms: float) -> Frame:
        """Begin the next frame. Time starts with the first one, however long ago the loop was set up."""
        if self._origin is None:
            self._origin = self.clock.now()
        time = self.clock.tick() - self._origin
        delta_time = time - self.time
        self.index += 1
        self.time = time
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
        )

    def _take_fixed_steps(self, delta_time: float) -> int:
        """The whole steps that are owed by now; the rest stays owed.

        Steps beyond the cap are dropped: a loop that cannot keep up slows its simulation down, and does not run ever
        more steps in ever longer frames.
        """
        self._owed_steps += delta_time / self._fixed_delta_time
        # A frame of exactly one step must take one, although its floats may be a hair short of it.
        whole = math.floor(self._owed_steps + 1e-6)
        self._owed_steps -= whole
        return min(whole, self._max_fixed_steps)
