"""The jobs that trace parts, one after the other, beside the frames."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

from perframe.tensor.background import Work


class TracingEndedError(Exception):
    """Ends tracing because the process ends."""


class Tracing:
    """The progress of a job that traces a part layer by layer. `layer` is the name of the current layer."""

    is_over = False  # set on the class when the process ends

    def __init__(self) -> None:
        self.layer = ""
        self._work = Work()

    def at(self, layer: str) -> None:
        """Note the current layer, and let frames go first."""
        self.layer = layer
        if Tracing.is_over:
            raise TracingEndedError
        self._work.give_way()


@cache
def _end_at_exit() -> None:
    """Stop all tracing when the process exits. Call it after the first job has begun: exit handlers run in reverse, so
    that this one runs before the handler that waits for jobs.
    """
    atexit.register(setattr, Tracing, "is_over", True)


class _Waiting:
    """Traces that wait for others. Several at a time would keep the cores and the GIL from runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces = deque[Callable[[], None]]()
        self._has_job = False

    def put(self, trace: Callable[[], None], in_job: Callable[[Callable[[], None]], Any]) -> None:
        with self._lock:
            self._traces.append(trace)
            begins, self._has_job = not self._has_job, True
        if begins:
            in_job(self._run)
            _end_at_exit()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._traces or Tracing.is_over:
                    self._has_job = False
                    return
                trace = self._traces.popleft()
            try:
                trace()
            except BaseException:
                with self._lock:
                    self._has_job = False
                raise


_waiting = _Waiting()


def trace_later(trace: Callable[[], None], in_job: Callable[[Callable[[], None]], Any]) -> None:
    """Run a trace after those that wait, in a job that `in_job` begins unless one is under way."""
    _waiting.put(trace, in_job)


def _forget() -> None:
    """Begin anew in a forked child, which has no thread for the job."""
    global _waiting
    _waiting = _Waiting()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
