"""Warns of frames that take too long, with the line that runs: such a window looks as if it had crashed. While kernels
or GL programs compile, the warning says so instead.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
import weakref
from pathlib import Path
from typing import Any

from perframe.host.failures import is_of_user
from perframe.tensor.compilation import compiling, programs

log = logging.getLogger("perframe")

SECONDS_OF_PATIENCE = 5.0


class Watchdog:
    """Warns about a frame that takes longer than `SECONDS_OF_PATIENCE`, once for each line that holds one. It does so
    from a thread that sleeps otherwise.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._thread_id = 0
        self._warned: set[float | str] = set()  # frames, by their beginnings, and lines
        self._excused: set[float] = set()  # the frame that was last found waiting for compilers
        self._forgiven = 0.0  # when kernels were last found compiling
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """A frame begins in this thread."""
        self._began, self._thread_id = time.perf_counter(), threading.get_ident()
        if self._thread is None:
            self._thread = threading.Thread(
                target=_watch, args=(weakref.ref(self), self._ends), name="perframe watchdog", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """The frame has ended."""
        self._began = None

    def release(self) -> None:
        """End the thread."""
        self._ends.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def look(self) -> None:
        """Warn about the present frame if it takes too long."""
        began = self._began
        if began is None:
            return
        if compiling.is_under_way:  # whatever the line is, it may wait for the compilers
            self._forgiven = time.perf_counter()
            if (seconds := self._forgiven - began) >= SECONDS_OF_PATIENCE and began not in self._excused:
                self._excused = {began}
                log.warning(
                    "this frame has taken %.0f s so far, and kernels are compiling: %s. `perframe warmup MODEL` "
                    "compiles them beforehand",
                    seconds,
                    compiling,
                )
            return
        if (seconds := time.perf_counter() - max(began, self._forgiven)) < SECONDS_OF_PATIENCE:
            return
        frame = sys._current_frames().get(self._thread_id)
        line = _line(frame)
        if began in self._warned or line in self._warned:
            return
        if programs.began > began and _waits_for_driver(frame):
            self._warned.add(began)
            log.warning(
                "this frame has taken %.0f s so far, and the driver is compiling GL programs (%d so far), once on this "
                "machine: `perframe warmup MODEL --backend gpu_compute` (or gpu_pixel) compiles them beforehand",
                seconds,
                programs.count,
            )
            return
        self._warned |= {began, line}
        log.warning(
            "this frame has taken %.0f s so far, and the window waits for it: %s. Await pf.next_frame() in long work, "
            "or give it to a worker or a thread; Ctrl-C ends the loop",
            seconds,
            line,
        )


def _watch(watchdog: weakref.ref[Watchdog], ends: threading.Event) -> None:
    while not ends.wait(SECONDS_OF_PATIENCE / 5):
        watched = watchdog()
        if watched is None:
            return
        watched.look()
        del watched


def _waits_for_driver(frame: Any) -> bool:
    """Whether the code that runs calls GL: then the user's line waits for the driver."""
    module = "" if frame is None else str(frame.f_globals.get("__name__"))
    return module.startswith(("perframe.backends.gl.", "perframe.graphics.", "moderngl"))


def _line(frame: Any) -> str:
    """The line that runs: the innermost one of the user's own code, if there is one. Otherwise a driver may work."""
    calls = [] if frame is None else list(traceback.walk_stack(frame))  # from the innermost
    last = next((index for index, (call, _) in enumerate(calls) if call.f_code.co_name == "loop_once"), len(calls))
    if not calls:
        return "its thread has ended"
    found = next((call for call in calls[:last] if is_of_user(call[0])), None)
    called, line = found or calls[0]
    where = f"{Path(called.f_code.co_filename).name}, line {line}, in {called.f_code.co_name}"
    return where if found else f"no line of yours, but {where}, which may wait for the driver"
