"""Coroutines inside the loop: they all run in one thread, and each goes on once a frame."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from typing import Any, TypeVar

from perframe.errors import InputError, PerframeError
from perframe.host.frame import Timeline, is_number
from perframe.host.tasks import Task

T = TypeVar("T")

_timeline: ContextVar[Timeline] = ContextVar("timeline")


@types.coroutine
def next_frame() -> Generator[None, None, None]:
    """Await it to go on in the next frame."""
    yield


@types.coroutine
def seconds(duration: float) -> Generator[None, None, None]:
    """Await it to go on after `duration` seconds by the loop's clock, counted from the beginning of this frame. It goes
    on in a later frame at the earliest.

    Raises PerframeError outside a coroutine of the loop, and InputError if `duration` is not a number.
    """
    if not is_number(duration):
        raise InputError(f"seconds() takes a number, not {duration!r}")
    try:
        timeline = _timeline.get()
    except LookupError:
        raise PerframeError("seconds() waits by an App's clock: await it in a coroutine that an App runs") from None
    end = timeline.time + duration
    yield
    while timeline.time < end:
        yield


class CoroutineTask(Task[T]):
    """A coroutine that the loop runs. It may await anything that yields None until it is done."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        timeline: Timeline,
        name: str | None = None,
        owner: object | None = None,
    ) -> None:
        if not inspect.iscoroutine(coroutine):
            raise InputError(f"start_coroutine takes the result of calling an `async def`, not {coroutine!r}")
        super().__init__(name or f"coroutine {getattr(coroutine, '__qualname__', coroutine)}", owner)
        self._coroutine = coroutine
        self._timeline = timeline
        self._stepped_in_frame: int | None = None

    def _advance(self) -> None:
        if self._stepped_in_frame == self._timeline.index:
            return  # it has run in this frame already
        self._stepped_in_frame = self._timeline.index
        token = _timeline.set(self._timeline)
        # In a notebook asyncio runs around this loop. An awaitable of asyncio must not find that outer loop here.
        around = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            yielded = self._coroutine.send(None)
            if yielded is not None:
                self._coroutine.throw(_foreign_awaitable(yielded))  # so that the traceback shows the `await`
        except StopIteration as stop:
            self._finish(stop.value)
        except RuntimeError as error:
            if "no running event loop" not in str(error):
                raise
            raise PerframeError(
                "a coroutine of an App awaited an awaitable of asyncio, whose loop does not run here: use "
                "perframe.seconds() and perframe.next_frame()"
            ) from error
        finally:
            asyncio._set_running_loop(around)
            _timeline.reset(token)

    def _close(self) -> None:
        self._coroutine.close()


def _foreign_awaitable(yielded: object) -> PerframeError:
    return PerframeError(
        f"the awaited object yielded a {type(yielded).__name__}: it belongs to another event loop. A coroutine of an "
        "App can await next_frame(), seconds(), a Readback, a Task, a coroutine, and objects that yield None until done"
    )
