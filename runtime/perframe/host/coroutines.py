"""Coroutines inside the loop: they all run in one thread, and each continues once a frame."""

from __future__ import annotations

import inspect
import types
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from perframe.errors import InputError, PerframeError
from perframe.host.event_loop import CurrentTask, FrameLoop, owner_of_code
from perframe.host.frame import Timeline, is_number
from perframe.host.tasks import Task

T = TypeVar("T")

_timeline: ContextVar[Timeline] = ContextVar("timeline")


@types.coroutine
def _frame() -> Generator[None, None, None]:
    yield


async def next_frame() -> None:
    """Await it to continue in the next frame."""
    await _frame()


async def seconds(duration: float) -> None:
    """Await it to continue after `duration` seconds by the loop's clock, counted from the beginning of this frame. It
    continues in the next frame at the earliest.

    Raises PerframeError outside a coroutine of the loop, and InputError if `duration` is not a number.
    """
    if not is_number(duration):
        raise InputError(f"seconds() takes a number, not {duration!r}")
    try:
        timeline = _timeline.get()
    except LookupError:
        raise PerframeError("seconds() waits by an App's clock: await it in a coroutine that an App runs") from None
    end = timeline.time + duration
    await _frame()
    while timeline.time < end:
        await _frame()


class CoroutineTask(Task[T]):
    """A coroutine that the loop runs. It may await what asyncio has, and anything that yields None until it is done."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        timeline: Timeline,
        loop: Callable[[], FrameLoop],
        name: str | None = None,
        owner: object | None = None,
    ) -> None:
        if not inspect.iscoroutine(coroutine):
            raise InputError(f"start_coroutine takes the result of calling an `async def`, not {coroutine!r}")
        super().__init__(name or f"coroutine {getattr(coroutine, '__qualname__', coroutine)}", owner)
        self._coroutine = coroutine
        self._timeline = timeline
        self._stepped_in_frame: int | None = None
        self._current = CurrentTask(self.name, loop())
        self._refusal: PerframeError | None = None  # to be raised at the next step
        self._context = copy_context()
        self._context.run(_timeline.set, timeline)
        self._context.run(owner_of_code.set, owner)

    def _advance(self) -> None:
        if self._stepped_in_frame == self._timeline.index or self._current.is_waiting:
            return  # it has run in this frame already, or asyncio has not done what it waits for
        self._stepped_in_frame = self._timeline.index
        try:
            with self._current.entered():
                refusal, self._refusal = self._refusal, None
                if self._current.take_cancellation():
                    yielded = self._context.run(self._coroutine.throw, CancelledError())
                elif refusal is not None:
                    yielded = self._context.run(self._coroutine.throw, refusal)
                else:
                    yielded = self._context.run(self._coroutine.send, None)
                if not self._waits_for(yielded):
                    # Thrown where the `await` is, so that the traceback shows it. The coroutine may catch it, and await
                    # something else.
                    again = self._context.run(self._coroutine.throw, _foreign_awaitable(yielded))
                    if not self._waits_for(again):
                        self._refusal = _foreign_awaitable(again)
        except StopIteration as stop:
            self._finish(stop.value)
        except CancelledError:
            self.cancel()

    def _waits_for(self, yielded: Any) -> bool:
        """Note for which future of asyncio the coroutine waits, if it waits for one. Return whether the loop can."""
        self._current.future = None
        if yielded is None:
            return True
        if not getattr(yielded, "_asyncio_future_blocking", None):
            return False
        yielded._asyncio_future_blocking = False  # as asyncio's tasks do, so that it can be awaited again
        if yielded.get_loop() is not self._current.loop:
            return False
        self._current.future = yielded
        return True

    def _close(self) -> None:
        with self._current.entered():
            self._context.run(self._coroutine.close)
        if self._current.future is not None:
            self._current.future.cancel()


def _foreign_awaitable(yielded: object) -> PerframeError:
    return PerframeError(
        f"the awaited object yielded a {type(yielded).__name__}: it belongs to another event loop. A coroutine of an "
        "App can await next_frame(), seconds(), a Readback, a Task, a coroutine, what asyncio makes in this App, and "
        "objects that yield None until done"
    )
