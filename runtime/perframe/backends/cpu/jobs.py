"""Jobs: functions that run on worker threads once what they depend on is finished. Idle threads sleep."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from perframe.tensor import Fence


class Job:
    """A function that was handed to the worker threads. It is a fence: others may wait for it or depend on it."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        depends_on: Sequence[Fence],
        after: Sequence[Fence],
    ) -> None:
        self._function, self._arguments = function, arguments
        self._depends_on = list(depends_on)
        self._after = [fence for fence in after if not fence.done]
        self._finished = threading.Event()
        self._error: BaseException | None = None

    @property
    def done(self) -> bool:
        """Whether it has finished or failed. Never blocks."""
        return self._finished.is_set()

    def wait(self) -> None:
        """Block until it has finished. Raises what it raised."""
        self._finished.wait()
        if self._error is not None:
            raise self._error

    def run(self) -> None:
        """Run it in this thread, after what it depends on."""
        try:
            for fence in self._after:
                with suppress(Exception):
                    fence.wait()
            for fence in self._depends_on:
                fence.wait()
            self._function(*self._arguments)
        except BaseException as error:  # handed to whoever waits
            self._error = error
        finally:
            self._depends_on, self._after, self._arguments = [], [], ()
            self._finished.set()


class _Pool:
    """Threads that take jobs in order. A job depends only on earlier ones, so the one in front can always run."""

    def __init__(self, threads: int) -> None:
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for index in range(threads):
            threading.Thread(target=self._work, name=f"perframe-job-{index}", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._queue.get().run()

    def put(self, job: Job) -> None:
        """Hand a job over."""
        self._queue.put(job)


_pool: _Pool | None = None
_lock = threading.Lock()


def schedule(
    function: Callable[..., Any], *arguments: Any, depends_on: Sequence[Fence] = (), after: Sequence[Fence] = ()
) -> Job:
    """Run `function(*arguments)` on a worker thread after `depends_on`; returns at once with its fence.

    The job fails with what it depends on. What it only comes `after` may fail.
    """
    global _pool
    with _lock:
        if _pool is None:
            _pool = _Pool(max(2, os.cpu_count() or 1))
    job = Job(function, arguments, depends_on, after)
    _pool.put(job)
    return job
