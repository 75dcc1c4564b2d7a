"""Pending downloads: the caller polls them, awaits them, or asks to block."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from perframe.errors import ReadbackPendingError

if TYPE_CHECKING:
    import numpy as np

log = logging.getLogger("perframe")
_POLL = "use readback_request() and poll it, or await readback_and_clone_async()"
WITHIN_A_MODEL = (
    "the model itself needs this value on the CPU before it can continue, so your readbacks do not help. Run the model "
    "on backend 'cpu', or cut it in two there (outputs=[...] of pf.load)"
)

_POLL_SECONDS = 0.0005


class Pending(Protocol):
    """A download that a backend has begun."""

    def poll(self) -> bool:
        """Whether the values have arrived. Never blocks."""

    def wait(self) -> None:
        """Block until the values have arrived."""

    def values(self) -> np.ndarray[Any, Any]:
        """Return the values. Call it only after `poll` has returned True."""


class _FrameOfThread(threading.local):
    """The frame that this thread runs. Each thread has its own: apps, and processes of films, run in several at once.
    Readbacks note its `index`, and blocking calls `inside` a frame are reported.
    """

    index: int = 0
    inside: bool = False
    waits: bool = False
    """Whether the results of a frame's runs arrive within that frame: see `complete_frames`."""
    watchers: ClassVar[list[Callable[[int], None]]] = []
    """Called with the number of each frame that begins, whatever its thread is."""
    _reported: bool = False

    def begin(self, index: int) -> None:
        """Begin a frame."""
        self.index, self.inside = index, True
        for watcher in tuple(self.watchers):  # another thread may end its profile meanwhile
            watcher(index)

    def blocking(self, call: str, advice: str = _POLL) -> None:
        """Log once that `call` blocked inside a frame, and what to do."""
        if self.inside and not self.waits and not self._reported:
            self._reported = True
            log.warning("%s blocked inside frame %d: %s", call, self.index, advice)

    @contextmanager
    def complete_frames(self) -> Iterator[None]:
        """In the block, readbacks of this thread finish within their frame, so that a film shows every result over its
        own picture.
        """
        before, self.waits = self.waits, True
        try:
            yield
        finally:
            self.waits = before


FrameState = _FrameOfThread()


class Readback:
    """A requested download that may not have arrived yet. `frame` is the host's frame in which it was requested."""

    def __init__(self, pending: Pending, name: str = "") -> None:
        self.frame = FrameState.index
        self.name = name
        self._pending = pending
        self._result: np.ndarray[Any, Any] | None = None

    @property
    def done(self) -> bool:
        """Whether `result()` has the values. Never blocks, except in a loop that waits for readbacks, such as that of
        `pf.process`.
        """
        if FrameState.waits and self._result is None:
            self._pending.wait()
        return self._result is not None or self._pending.poll()

    def result(self, wait: bool = False) -> np.ndarray[Any, Any]:
        """The values as an array. Raises ReadbackPendingError before `done`, unless `wait`, which blocks."""
        if self._result is None:
            if not self._pending.poll():
                if not wait:
                    raise ReadbackPendingError(
                        f"the readback of {self.name or 'a tensor'} asked in frame {self.frame} has not arrived: "
                        "poll .done, await it, or call result(wait=True), which blocks"
                    )
                FrameState.blocking("Readback.result(wait=True)")
                self._pending.wait()
            self._result = self._pending.values()
        return self._result

    def __await__(self) -> Generator[Any, None, np.ndarray[Any, Any]]:
        """Give the frame back until the values have arrived.

        A readback that was requested in this frame gives the frame back at least once. Otherwise a loop that requests
        and awaits would hold the frame for ever.
        """
        asyncio = sys.modules.get("asyncio")  # imported, if its loop is running
        loop = asyncio._get_running_loop() if asyncio is not None else None
        if asyncio is not None and loop is not None and not hasattr(loop, "steps_once_a_frame"):
            yield from asyncio.sleep(0).__await__()
            while not self.done:
                yield from asyncio.sleep(_POLL_SECONDS).__await__()
        else:  # the host's loop resumes a bare yield once a frame
            yield from give_frame_back(self.frame)
            while not self.done:
                yield
        return self.result()


def give_frame_back(begun: int) -> Generator[None, None, None]:
    """Yield to the host's loop once if the awaited work began in this frame."""
    if begun == FrameState.index:
        yield
