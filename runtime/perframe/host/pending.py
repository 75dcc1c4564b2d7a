"""Tasks that the loop carries on without blocking: readbacks, and schedules that advance within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from perframe.errors import InputError
from perframe.host.clock import Clock
from perframe.host.frame import is_number
from perframe.host.tasks import Task
from perframe.tensor.frames import current_frame

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class PendingResult(Protocol[T_co]):
    """A result that arrives later, such as a perframe Readback."""

    @property
    def done(self) -> bool:
        """Whether the result is there. Never blocks."""
        ...

    def result(self) -> T_co:
        """The result, once `done`."""
        ...


class ReadbackTask(Task[T]):
    """Polls a readback once a frame, and calls the callback with its result."""

    def __init__(
        self, readback: PendingResult[T], callback: Callable[[T], object], owner: object | None = None
    ) -> None:
        if not hasattr(readback, "done") or not callable(getattr(readback, "result", None)) or not callable(callback):
            raise InputError(
                "when_done takes an object with `done` and `result()`, such as tensor.readback_request(), and a "
                f"function of the result, not {readback!r} and {callback!r}"
            )
        super().__init__(f"when_done of {getattr(readback, 'name', '') or type(readback).__name__}", owner)
        self._readback = readback
        self._callback = callback

    def _advance(self) -> None:
        if self._readback.done:
            result = self._readback.result()
            self._callback(result)
            self._finish(result)


class ScheduleTask(Task[None]):
    """Takes steps of an iterator until the frame's budget is spent; at least one step a frame, so it always ends."""

    def __init__(
        self,
        steps: Iterable[object],
        clock: Clock,
        budget_ms: float,
        on_done: Callable[[], object] | None = None,
        owner: object | None = None,
    ) -> None:
        if not isinstance(steps, Iterable) or not is_number(budget_ms):
            raise InputError(
                "advance takes an iterator, such as worker.schedule_iterable(x), and milliseconds, not "
                f"{steps!r} and {budget_ms!r}"
            )
        super().__init__(f"schedule {getattr(steps, '__qualname__', type(steps).__name__)}", owner)
        self.budget_ms = budget_ms
        self._steps = iter(steps)
        self._clock = clock
        self._on_done = on_done

    def _advance(self) -> None:
        began = self._clock.now()
        reported_ms = 0.0
        for cost in self._steps:
            if isinstance(cost, float):  # the clock does not see GPU time, but a step can know it from a timer query
                reported_ms += cost
            elapsed_ms = (self._clock.now() - began) * 1000
            if self.done or (not current_frame().waits and max(elapsed_ms, reported_ms) >= self.budget_ms):
                return
        if self._on_done is not None:
            self._on_done()
        self._finish(None)

    def _close(self) -> None:
        close = getattr(self._steps, "close", None)  # generators have it
        if close is not None:
            close()
