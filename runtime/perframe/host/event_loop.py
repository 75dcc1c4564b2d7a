"""asyncio inside the frame loop: an event loop that an app lets continue once a frame, and that never waits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from perframe.host.frame import Clock

log = logging.getLogger("perframe")

# Callbacks that call others are carried on within a frame, so that a chain of futures takes one frame. A chain without
# an end may not hold the frame for ever.
_MOST_ROUNDS = 64

owner_of_code: ContextVar[object | None] = ContextVar("owner_of_code", default=None)
"""The script whose coroutine runs; a task that is created in it belongs to the script."""


class FrameLoop(asyncio.SelectorEventLoop):
    """An event loop for one app. In its tasks a bare `yield` waits for the next frame, and times are the app's clock's.

    `fails` is called with a task's name and its error, and returns whether the app continues.
    """

    steps_once_a_frame = True
    """Whether a bare `yield` waits for the next frame, so that a readback need not wait by a timer."""

    def __init__(self, clock: Clock, fails: Callable[[str, Exception], bool]) -> None:
        self._has_callbacks = False
        self._app_clock, self._fails = clock, fails
        self._until_next_frame: list[asyncio.Future[None]] = []
        self._owners: WeakKeyDictionary[Any, object] = WeakKeyDictionary()
        self._error: Exception | None = None
        self._is_ending = False
        super().__init__()
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._report)

    def time(self) -> float:
        """Seconds by the app's clock, which a time scale and a pause do not change."""
        return self._app_clock.now()

    def call_soon(self, *arguments: Any, **settings: Any) -> asyncio.Handle:  # type: ignore[override]
        """As asyncio's; the loop notes that it has callbacks."""
        self._has_callbacks = True
        return super().call_soon(*arguments, **settings)

    def call_soon_threadsafe(self, *arguments: Any, **settings: Any) -> asyncio.Handle:  # type: ignore[override]
        """As asyncio's; the loop notes that it has callbacks."""
        self._has_callbacks = True
        return super().call_soon_threadsafe(*arguments, **settings)

    def next_frame(self) -> asyncio.Future[None]:
        """A future that is done in the next frame."""
        future = self.create_future()
        self._until_next_frame.append(future)
        return future

    def advance(self) -> None:
        """Run what is due in this frame, without waiting. Raises the error of a task that ends the loop."""
        if self.is_closed():
            return  # the app was released in this frame
        waiting, self._until_next_frame = self._until_next_frame, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        with running(None):
            for _ in range(_MOST_ROUNDS):
                self._has_callbacks = False
                self.stop()  # so that it runs once
                self.run_forever()
                if not self._has_callbacks:
                    break
        if self._is_ending:
            self.end()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def cancel(self, owner: object | None = None) -> None:
        """Cancel the tasks of a script, or all tasks. They end in the next frame, or at the app's end."""
        for task in asyncio.all_tasks(self):
            if owner is None or self._owners.get(task) is owner:
                task.cancel()

    def end(self) -> None:
        """Cancel all tasks, let them clean up, and close. Threads of `asyncio.to_thread` are waited for."""
        if self.is_closed():
            return
        self._is_ending = True
        self.cancel()
        if self.is_running():
            return  # a task of this loop has released the app: `advance` continues here
        self._is_ending = False
        with outside_of_tasks(self):  # a coroutine's step may release the app
            for _ in range(_MOST_ROUNDS):
                if not asyncio.all_tasks(self):
                    break
                self.advance()
            for task in asyncio.all_tasks(self):
                log.warning("%s was canceled at the app's end, and did not end", task.get_name())
            with running(None):
                self.run_until_complete(self.shutdown_asyncgens())
                self.run_until_complete(self.shutdown_default_executor())
                self.close()

    def _make_task(self, _loop: Any, coroutine: Any, **settings: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(_FrameByFrame(coroutine, self), loop=self, **settings)
        self._owners[task] = owner_of_code.get()
        return task

    def _report(self, _loop: Any, context: dict[str, Any]) -> None:
        """Pass on the error of a task that nothing has awaited, or of a callback."""
        error = context.get("exception")
        task = context.get("task") or context.get("future")
        name = getattr(task.get_coro(), "__qualname__", "") if isinstance(task, asyncio.Task) else ""
        if not isinstance(error, Exception):
            log.warning("asyncio: %s", context.get("message"))
        elif not self._fails(name or "asyncio", error):
            error.add_note(f"in {name or 'a callback of asyncio'}")
            self._error = error


class _FrameByFrame(Coroutine[Any, Any, Any]):
    """A coroutine whose bare yields wait for the next frame."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], loop: FrameLoop) -> None:
        self._coroutine, self._loop = coroutine, loop
        self.__qualname__ = getattr(coroutine, "__qualname__", type(coroutine).__name__)

    def send(self, value: Any) -> Any:
        return self._translate(self._coroutine.send(value))

    def throw(self, *error: Any) -> Any:
        return self._translate(self._coroutine.throw(*error))

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._coroutine.__await__()

    def _translate(self, yielded: Any) -> Any:
        if yielded is not None:
            return yielded
        future: Any = self._loop.next_frame()
        future._asyncio_future_blocking = True  # as `await` sets it
        return future


class CurrentTask:
    """A coroutine of the app as asyncio sees it: `asyncio.timeout` and `TaskGroup` cancel it.

    `future` is the future of asyncio for which the coroutine waits.
    """

    def __init__(self, name: str, loop: FrameLoop) -> None:
        self.loop, self.future = loop, None
        self._name, self._requests, self._must_throw = name, 0, False

    future: asyncio.Future[Any] | None

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a future that is not done."""
        return self.future is not None and not self.future.done()

    def take_cancellation(self) -> bool:
        """Whether to throw CancelledError now. Asked once for each request."""
        asked, self._must_throw = self._must_throw, False
        return asked

    def cancel(self, msg: Any = None) -> bool:
        """Let the coroutine raise CancelledError when it continues."""
        self._requests += 1
        if self.future is None or not self.future.cancel(msg=msg):
            self._must_throw = True
        return True

    def cancelling(self) -> int:
        """The number of requests to cancel it."""
        return self._requests

    def uncancel(self) -> int:
        """Take back a request."""
        self._requests = max(0, self._requests - 1)
        if not self._requests:
            self._must_throw = False
        return self._requests

    def done(self) -> bool:
        """False: it runs."""
        return False

    def get_name(self) -> str:
        """The name of the coroutine's task."""
        return self._name

    def get_loop(self) -> FrameLoop:
        """The app's event loop."""
        return self.loop

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The block is this task's step, as asyncio sees it. Steps may be nested: a coroutine can start another."""
        this: Any = self
        with outside_of_tasks(self.loop):
            asyncio._enter_task(self.loop, this)
            try:
                with running(self.loop):
                    yield
            finally:
                asyncio._leave_task(self.loop, this)


@contextmanager
def outside_of_tasks(loop: FrameLoop) -> Iterator[None]:
    """In the block, no task of the loop takes a step, as asyncio sees it."""
    outer: Any = asyncio.current_task(loop)
    if outer is not None:
        asyncio._leave_task(loop, outer)
    try:
        yield
    finally:
        if outer is not None:
            asyncio._enter_task(loop, outer)


@contextmanager
def running(loop: FrameLoop | None) -> Iterator[None]:
    """In the block, `loop` is the running one. Another one may run around it: in a notebook, or another app's."""
    around = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(around)
