"""The jobs that trace parts, one after the other, beside the frames."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from time import perf_counter, sleep
from typing import Any

from perframe.tensor.background import Work

POLL = 0.0005  # seconds


class TracingEndedError(Exception):
    """Ends tracing because the process ends."""


class Tracing:
    """The progress of a job that traces a part layer by layer. `layer` is the name of the current layer."""

    is_over = False  # set on the class when the process ends

    def __init__(self) -> None:
        self.layer = ""
        self._work, self._is_awaited = Work(), False
        self._process = 0  # in which a trace is under way, or waits for others

    def begin(self, trace: Callable[[], None], in_job: Callable[[Callable[[], None]], Any]) -> None:
        """Run a trace later (see `trace_later`), for which `wait` waits."""

        def run() -> None:
            try:
                trace()
            finally:
                self._process = 0

        self._process = os.getpid()
        trace_later(run, in_job)

    def at(self, layer: str) -> None:
        """Note the current layer, and let frames go first, unless one waits for the trace."""
        self.layer = layer
        if Tracing.is_over:
            raise TracingEndedError
        if not self._is_awaited:
            self._work.give_way()

    def wait(self, find: Callable[[], Any], seconds: float) -> Iterator[None]:
        """Wait until `find` returns what a trace makes, for these seconds at most and while one is under way. Yields
        after each short sleep.
        """
        end, self._is_awaited = perf_counter() + seconds, True
        try:
            while self._process == os.getpid() and perf_counter() < end and find() is None:
                sleep(POLL)
                yield
        finally:
            self._is_awaited = False


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
