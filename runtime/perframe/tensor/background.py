"""Work in a thread beside the frames: it keeps the GIL for a turn of a millisecond, and pauses while a frame runs."""

from __future__ import annotations

import atexit
import contextvars
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Generic, TypeVar, cast

from perframe.errors import BackendError, ClosedError, PerframeError
from perframe.tensor import frames

T = TypeVar("T")
TURN = 0.001  # seconds that the work keeps the GIL
PAUSE = 0.006  # seconds between two turns within a frame, at most: the end of the frame ends the pause
BREATH = 0.0001  # seconds between two turns outside of frames, in which a thread that waits gets the GIL
_POLL_SECONDS = 0.001
_AT_EXIT = 10.0  # seconds that the exit of the process waits for a thread to end


class _CancelledError(BaseException):
    """Ends canceled work; not an Exception, so that no handler of the work takes it for an error."""


class Work:
    """The state of work that its thread and its owner share. `what` is the current step, `share` its fraction done."""

    def __init__(self) -> None:
        self.what, self.share = "", 0.0
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_cancelled = self.is_done = False
        self._began = 0.0  # when the thread got the GIL

    def report(self, what: str, share: float) -> None:
        """Note the progress."""
        self.what, self.share = what, share
        self.give_way()

    def give_way(self) -> None:
        """Pause after a turn. Ends canceled work."""
        if self.is_cancelled:
            raise _CancelledError
        if time.perf_counter() - self._began > TURN:
            frames.between.wait(PAUSE)  # returns at once outside of frames
            time.sleep(BREATH)
            if self.is_cancelled:
                raise _CancelledError
            self._began = time.perf_counter()

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, with a turn before each."""
        for item in items:
            self.give_way()
            yield item

    def run(self, function: Callable[[Work], Any]) -> None:
        """Run the function in this thread, and keep its result or its error."""
        _own.work = self
        try:
            result = function(self)
            if not self.is_cancelled:
                self.result = result
        except _CancelledError:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.is_done = True


class _Own(threading.local):
    """The work of this thread."""

    work: Work | None = None


_own = _Own()
_threads: weakref.WeakKeyDictionary[threading.Thread, Work] = weakref.WeakKeyDictionary()


def take_turns() -> None:
    """Let frames go first in a thread that works beside them. Called for each layer; does nothing in other threads."""
    work = _own.work
    if work is not None:
        work.give_way()


def in_turns(items: Iterable[T]) -> Iterable[T]:
    """Return the items. In a thread that works beside frames, frames go first between two of them."""
    work = _own.work
    return items if work is None else work.each(items)


def is_beside_frames() -> bool:
    """Whether this thread works beside frames."""
    return _own.work is not None


class Background(Generic[T]):
    """Work in progress beside the frames: poll `done`, `await` it in any loop, or `cancel()` it.

    `progress` is a fraction from 0 to 1, and `doing` says what it does. The work ends soon after the last reference to
    this object is gone.
    """

    def __init__(
        self,
        function: Callable[[Work], T],
        name: str,
        progress: Callable[[str, float], None] | None = None,
    ) -> None:
        """Begin `function(work)` in a thread. `progress(what, share)` is called by the thread that awaits. Raises
        BackendError if the system allows no more threads.
        """
        self.name, self._progress, self._told = name, progress, ("", -1.0)
        self._work, self._process, self._frame = Work(), os.getpid(), frames.current_frame().index
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._work.run, function), name=f"perframe: {name}", daemon=True
        )
        _threads[self._thread] = self._work
        try:
            self._thread.start()
        except RuntimeError as error:
            raise BackendError(f"{name}: no thread could be started: {error}") from error

    @property
    def done(self) -> bool:
        """Whether it has finished, failed or been canceled. Never blocks."""
        return self._work.is_done or self._work.is_cancelled or self._process != os.getpid()

    @property
    def ended(self) -> bool:
        """Whether its thread has ended, too."""
        return self._work.is_done or self._process != os.getpid()

    @property
    def failed(self) -> bool:
        """Whether it has ended with an error."""
        return self._work.is_done and not self._work.is_cancelled and self._work.error is not None

    @property
    def progress(self) -> float:
        """The fraction that is done of the current step, from 0 to 1; 1 at the end."""
        return 1.0 if self._work.is_done else self._work.share

    @property
    def doing(self) -> str:
        """The current step."""
        return self._work.what

    def result(self, wait: bool = False) -> T:
        """Return the result. Raises the error of the work, ClosedError if it was canceled, and PerframeError if it is
        not done, unless `wait`, which blocks.
        """
        if wait and not self.done:
            frames.current_frame().blocking(f"{self.name}.result(wait=True)", "await it, or poll .done")
            self._thread.join()
        if self._work.is_cancelled:
            raise ClosedError(f"{self.name} was canceled")
        if not self._work.is_done:
            if self._process != os.getpid():
                raise ClosedError(f"{self.name}: its thread is in the parent of this forked process: begin it again")
            raise PerframeError(f"{self.name} is not done: poll .done, or await it")
        if self._work.error is not None:
            raise self._work.error
        return cast(T, self._work.result)

    def cancel(self) -> None:
        """Let it end without a result, within a turn or two. Does nothing if it is done. Never blocks."""
        if not self._work.is_done:
            self._work.is_cancelled = True

    def __await__(self) -> Generator[Any, None, T]:
        """Frames continue until it is done. Whoever cancels the waiting code cancels the work."""
        try:
            yield from frames.give_frames_back(self._poll, self._frame)
        except BaseException:
            self.cancel()
            raise
        return self.result()

    def _poll(self) -> bool:
        now = self._work.what, self._work.share
        if self._progress is not None and now != self._told and now[0]:
            self._told = now
            self._progress(*now)
        return self.done

    def __del__(self) -> None:
        work = getattr(self, "_work", None)
        if work is not None and not work.is_done:
            work.is_cancelled = True

    def __repr__(self) -> str:
        state = "canceled" if self._work.is_cancelled else "done" if self.done else f"{self.progress:.0%} {self.doing}"
        return f"<{self.name}: {state}>"


def _end_all() -> None:
    left = [(thread, work) for thread, work in list(_threads.items()) if thread.is_alive()]
    for _, work in left:
        work.is_cancelled = True
    for thread, _ in left:
        thread.join(_AT_EXIT)


atexit.register(_end_all)  # native code must not lose the interpreter
