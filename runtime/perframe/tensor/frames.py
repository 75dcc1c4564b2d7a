"""The frames of a loop: readbacks note their numbers, and calls that block inside one are reported."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

log = logging.getLogger("perframe")
_POLL = "use readback_request() and poll it, or await readback_and_clone_async()"
WITHIN_A_MODEL = (
    "the model itself needs this value on the CPU before it can continue, so your readbacks do not help. Run the model "
    "on backend 'cpu', or cut it in two there (outputs=[...] of pf.load)"
)
WHILE_DRAWN = (
    "the frame waits until the CPU has computed and copied the values. Draw the result of an earlier frame, or give "
    "the run a budget: app.schedule(worker, x, budget_ms=4). A worker on a GPU makes no frame wait"
)
BRIEF = 0.005  # seconds that a call may wait for the CPU inside a frame without a report
frame_watchers: list[Callable[[int], None]] = []
"""Called with the number of each frame that begins, in any loop."""
between = threading.Event()
"""Set while no loop of the process is inside a frame."""
between.set()
_inside: list[FrameState] = []  # the loops that are inside a frame


class FrameState:
    """The frame of one loop: its number, and whether the loop is inside it.

    With `waits`, readbacks finish within their frame, so that a film shows every result over its own picture.
    """

    def __init__(self, waits: bool = False) -> None:
        self.index, self.inside, self.waits = 0, False, waits
        self._reported = False
        self._named: tuple[str, str] | None = None

    def begin(self, index: int) -> None:
        """Begin a frame."""
        self.index, self.inside = index, True
        for watcher in tuple(frame_watchers):  # another thread may end its profile meanwhile
            watcher(index)

    def blocking(self, call: str, advice: str = _POLL) -> None:
        """Log once that `call` blocked inside a frame, and what to do."""
        if self.inside and not self.waits and not self._reported:
            self._reported = True
            call, advice = self._named or (call, advice)
            log.warning("%s blocked inside frame %d: %s", call, self.index, advice)

    @contextmanager
    def named(self, call: str, advice: str) -> Iterator[None]:
        """Within the block, report a call that blocks as `call`: it is what the user's code calls."""
        around, self._named = self._named, self._named or (call, advice)
        try:
            yield
        finally:
            self._named = around

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Within the block, this thread's frame is that of this loop; then that of the loop around it. Outside of
        loops the number of the last frame stays.
        """
        around, _current.state = _current.state, self
        _inside.append(self)
        between.clear()
        try:
            yield
        finally:
            _inside.remove(self)
            if not _inside:
                between.set()
            self.inside, _current.state = False, around
            if not around.inside:
                around.index = self.index


class _Current(threading.local):
    """The state of the loop whose frame this thread runs: apps, and processes of films, run in several at once."""

    def __init__(self) -> None:
        self.state = FrameState()


_current = _Current()


def current_frame() -> FrameState:
    """The frame that this thread runs, or ran last."""
    return _current.state


def give_frames_back(done: Callable[[], bool], begun: int, seconds: float = 0.0005) -> Generator[Any, None, None]:
    """Let frames continue until `done`, and at least one if the awaited work began in this frame. In loops of asyncio,
    ask again after `seconds`.
    """
    asyncio = sys.modules.get("asyncio")  # imported, if its loop is running
    loop = asyncio._get_running_loop() if asyncio is not None else None
    if asyncio is not None and loop is not None and not hasattr(loop, "steps_once_a_frame"):
        yield from asyncio.sleep(0).__await__()
        while not done():
            yield from asyncio.sleep(seconds).__await__()
        return
    if begun == current_frame().index:
        yield
    while not done():  # the host's loop resumes a bare yield once a frame
        yield
