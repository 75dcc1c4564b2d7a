"""Jobs: functions that run when their dependencies have finished. Worker threads run them, and sleep while there are no
jobs. A thread that waits for a job runs it itself if no other thread has begun it.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from perframe.backends.cpu.threads import helpers
from perframe.errors import BackendError
from perframe.tensor import Fence

EXIT_SECONDS = 10  # the time that the exit of the process waits for a running job

log = logging.getLogger("perframe")
_numbers = itertools.count()
_under_way: set[ThreadJob] = set()  # jobs of the pool that have not ended
_FORKED = (
    "a run was under way when this process was forked, and ended with its parent: make a new worker in the "
    "child, or wait before you fork"
)


class ThreadJob:
    """A function that runs once, in any thread. A job is a fence: threads wait for it, and other jobs depend on it."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...] = (),
        depends_on: Iterable[Fence] = (),
        after: Iterable[Fence] = (),
    ) -> None:
        self._function, self._arguments = function, arguments
        self._depends_on = tuple(depends_on)
        self._after = tuple([fence for fence in after if not fence.done]) if after else ()
        self._number = next(_numbers)  # a job depends only on jobs with smaller numbers
        self._unclaimed, self._finished = threading.Lock(), threading.Lock()
        self._finished.acquire()
        self._thread = 0
        self._error: BaseException | None = None
        self._is_known = False  # whether a waiting thread got the error
        self.running = False  # whether its function has been called
        self.done = False  # whether it has finished or failed

    @classmethod
    def failed(cls, error: BaseException) -> ThreadJob:
        """Return a job that has already raised an error."""
        job = cls(_fail, (error,))
        job.run_here()
        return job

    @property
    def behind(self) -> tuple[Fence, ...]:
        """The fences that the job waits for before it runs."""
        return self._after + self._depends_on

    def wait(self) -> None:
        """Block until the job has finished, or run it here if no thread has begun it. Raises the job's error."""
        if not self.done:
            if self._thread == threading.get_ident():
                raise BackendError("a job waits for itself: let its function take arrays, not tensors it writes")
            run_unclaimed(self)
            with self._finished:
                pass
        if self._error is not None:
            self._is_known = True
            raise self._error

    def finish_within(self, seconds: float) -> None:
        """Block until the job has finished, for `seconds` at most."""
        if self._finished.acquire(timeout=seconds):
            self._finished.release()

    def run_here(self) -> bool:
        """Run the job in this thread after its dependencies, unless another began it. Return whether it ran here."""
        if not self._unclaimed.acquire(blocking=False):
            return False
        self._thread = threading.get_ident()
        try:
            for fence in self._after:
                with suppress(Exception):
                    fence.wait()
            for fence in self._depends_on:
                fence.wait()
            self.running = True
            self._function(*self._arguments)
        except Exception as error:  # `wait` raises it
            self._error = error
        except BaseException as error:
            # Ctrl-C is for the thread that waits, once. Whoever uses the job's results later gets an ordinary error.
            self._error = BackendError(f"a run was interrupted by {type(error).__name__}: schedule it again")
            self._error.__cause__, self._is_known = error, True
            if threading.current_thread() is threading.main_thread():
                raise
        finally:
            self._depends_on, self._after, self._arguments = (), (), ()
            self._end()
        return True

    def _end(self) -> None:
        if self.done:
            return  # its own function has forked, and this is the child
        self._function, self._thread = _nothing, 0
        self.running, self.done = False, True
        _under_way.discard(self)
        self._finished.release()

    def end_in_child(self) -> None:
        """Fail in a forked child: the thread that ran the job, or would have run it, is the parent's."""
        if not self.done:
            self._error, self._is_known = BackendError(_FORKED), True
            self._end()

    def __del__(self) -> None:
        error = getattr(self, "_error", None)
        if error is not None and not self._is_known:
            log.error("a job failed, and no code waited for it: %s: %s", type(error).__name__, error, exc_info=error)


def _fail(error: BaseException) -> None:
    raise error


def _nothing() -> None:
    """Stand in for the function of a finished job, which may hold much memory."""


def run_unclaimed(job: ThreadJob) -> None:
    """Run a queued job in this thread, after the queued jobs that it waits for. Jobs that other threads have begun are
    left to them.

    This is a loop rather than a recursion, since frames that overlap make long chains.
    """
    if not (job._after or job._depends_on):
        job.run_here()
        return
    found: dict[int, ThreadJob] = {}
    seen, stack = set[int](), list[Any]([job])
    while stack:
        fence = stack.pop()
        if id(fence) in seen or fence.done:
            continue
        seen.add(id(fence))
        if isinstance(fence, ThreadJob):
            found[fence._number] = fence
        stack += getattr(fence, "behind", ())
    for number in sorted(found):
        found[number].run_here()


class _Pool:
    """Threads that take jobs in order. A job depends only on earlier jobs, so that the first one can always run."""

    def __init__(self, threads: int) -> None:
        self._queue: queue.SimpleQueue[ThreadJob] = queue.SimpleQueue()
        self._current: list[ThreadJob | None] = [None] * threads
        self._closed = False
        for index in range(threads):
            thread = threading.Thread(target=self._work, args=(index,), name=f"perframe-job-{index}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the system allows no more threads
                if not index:
                    raise BackendError(f"no thread could be started for jobs: {error}") from error
                break

    def _work(self, index: int) -> None:
        while not self._closed:
            self._run_next(index)

    def _run_next(self, index: int) -> None:
        """Run the next job. This is a function of its own, so that a sleeping thread keeps no job alive."""
        job = self._current[index] = self._queue.get()
        job.run_here()
        self._current[index] = None

    def put(self, job: ThreadJob) -> None:
        """Add a job to the queue."""
        self._queue.put(job)

    def finish(self) -> None:
        """Begin no more jobs, and wait for the running jobs: native code must not lose the memory that it uses."""
        self._closed = True
        for job in self._current:
            if job is not None and job.running:
                job.finish_within(EXIT_SECONDS)


_pool: _Pool | None = None
_lock = threading.Lock()


def _shared_pool() -> _Pool:
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = _Pool(max(2, helpers.thread_count()))
                atexit.register(_pool.finish)
    return _pool


def _forget() -> None:
    """Forget the pool in a forked child, which has none of its threads and makes its own."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()
    for job in list(_under_way):
        job.end_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def schedule(
    function: Callable[..., Any], *arguments: Any, depends_on: Sequence[Fence] = (), after: Sequence[Fence] = ()
) -> ThreadJob:
    """Run `function(*arguments)` on a worker thread after `depends_on` and `after`. Return its job at once.

    If a fence of `depends_on` fails, the job fails too. The fences in `after` may fail.
    """
    job = ThreadJob(function, arguments, depends_on, after)
    pool = _shared_pool()
    _under_way.add(job)
    pool.put(job)
    return job
