"""The GPU's time of each step: timestamps that the GPU writes between steps, read when they are there.

GL 3.3 has timestamps (ARB_timer_query). Unlike a query of elapsed time, one may be written while a query of the
application runs.
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from functools import cache, partial
from time import perf_counter_ns
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perframe.backends.gl.context.device import Device
from perframe.backends.gl.replay import CommandList
from perframe.backends.protocol import KEPT, TimedRun
from perframe.backends.run_times import RunTimes, StampWords, alike

RUNS = 4  # runs that wait for their times, at most; further runs are not timed
TIMESTAMP = 0x8E28
Queries = ctypes.Array[ctypes.c_uint]  # the names of two
_COUNTER_BITS, _RESULT, _AVAILABLE = 0x8864, 0x8866, 0x8867


class StepTimers(Protocol):
    """Times the steps of a program. A command list makes `call` before each step and after the last. Each run fills the
    word `word` of these calls.
    """

    call: tuple[str | int, int, int]
    word: int

    def begin(self, step: int, count: int) -> NDArray[Any] | None:
        """Return the words for a run of `count` consecutive steps, the first of which is number `step`. None if the run
        cannot be timed. The context is current.
        """

    def take(self, wait: bool = False) -> list[TimedRun]:
        """Remove and return the runs whose times are there; with `wait`, block for all. The context is current."""

    def shortest(self, wait: bool = False) -> list[float]:
        """The shortest time of each step in seconds, infinite before the first. The context is current."""


class QueryTimers:
    """Times steps by the GPU's clock: with queries, which a run never waits for. They are read when the GPU has written
    them, runs later.

    The queries form a ring. Each run has some that follow each other, and native code writes and reads them.
    """

    call: tuple[str | int, int, int] = ("glQueryCounter", 0, TIMESTAMP)
    word = 1

    def __init__(self, device: Device, steps: int) -> None:
        self._device = device
        most = RUNS * (steps + 1) if _has_clock(device.gl) else 0
        self._queries = (ctypes.c_uint * most)()
        device.gl.glGenQueries(most, self._queries)
        self._names = np.array(self._queries, np.uint32)
        self._stamps = np.zeros(most, np.int64)
        self._reads = CommandList(device.gl, {})
        for index, name in enumerate(self._names.tolist()):
            self._reads.call("glGetQueryObjectui64v", name, _RESULT, self._stamps.ctypes.data + 8 * index)
        self._reads.finish()
        self._next = 0  # the first query of the next run
        self._pending: deque[tuple[int, int, int]] = deque()  # of each run: its first step, its first query, how many
        self._arrived: list[tuple[int, NDArray[np.int64]]] = []  # the first step of each run, and its stamps
        self._times = RunTimes(steps)
        self._ahead = perf_counter_ns() - _now(device.gl) if most else 0  # of the CPU's clock

    def begin(self, step: int, count: int) -> NDArray[Any] | None:
        """Return the names of free queries, or None if too few are free."""
        self._read(wait=False)
        first = self._room(count)
        if first is None:
            return None
        self._pending.append((step, first, count))
        self._next = first + count
        return self._names[first : first + count]

    def _room(self, count: int) -> int | None:
        """The first of `count` consecutive free queries in the ring."""
        if not self._pending:
            return 0 if count <= len(self._names) else None
        oldest = self._pending[0][1]
        if self._next <= oldest:  # the newest runs lie before the oldest
            return self._next if self._next + count <= oldest else None
        if self._next + count <= len(self._names):
            return self._next
        return 0 if count <= oldest else None

    def _read(self, wait: bool) -> None:
        """Read the stamps that are there. They are worked out later: a frame waits now."""
        there = ctypes.c_int()
        while self._pending:
            step, first, count = self._pending[0]
            if not wait:
                self._device.gl.glGetQueryObjectiv(int(self._names[first + count - 1]), _AVAILABLE, ctypes.byref(there))
                if not there.value:
                    break
            self._reads.run_some(first, first + count)
            self._arrived.append((step, self._stamps[first : first + count].copy()))
            self._pending.popleft()
        if len(self._arrived) >= KEPT:
            self._work_out()

    def _work_out(self) -> None:
        arrived, self._arrived = self._arrived, []
        for step, stamps in alike(arrived):  # drivers round them, so that a later one may be smaller
            self._times.add(step, np.maximum.accumulate(stamps.astype(np.float64) + self._ahead, axis=1))

    def take(self, wait: bool = False) -> list[TimedRun]:
        """Return the runs whose times are there; with `wait`, block for all."""
        self._read(wait)
        self._work_out()
        return self._times.take()

    def shortest(self, wait: bool = False) -> list[float]:
        """The shortest time of each step."""
        self._read(wait)
        self._work_out()
        return self._times.shortest()

    def __del__(self) -> None:
        if len(self._names):
            self._device.free_later(partial(self._device.gl.glDeleteQueries, len(self._names), self._queries))


class CallTimers:
    """Times steps by the CPU's clock, on a driver whose calls return when their work is done: so llvmpipe runs compute
    shaders. A query would cost it more than many a step takes.
    """

    word = 2

    def __init__(self, device: Device, steps: int) -> None:
        self.call: tuple[str | int, int, int] = (system_clock(), _MONOTONIC, 0)
        self._words = StampWords(steps, words=2)  # seconds and nanoseconds
        self._ended: list[tuple[int, NDArray[np.int64]]] = []  # the first step of each run, and its stamps
        self._times = RunTimes(steps)

    def begin(self, step: int, count: int) -> NDArray[Any] | None:
        """Return the addresses of the stamps."""
        if len(self._ended) >= KEPT:
            self._work_out()
        first = self._words.begin(count)
        stamps = self._words.stamps[first : first + count]
        self._words.keep(count)
        self._ended.append((step, stamps))
        return stamps.ctypes.data + 16 * np.arange(count)

    def _work_out(self) -> None:
        ended, self._ended = self._ended, []
        for step, words in alike(ended):
            stamps = words @ np.array([1e9, 1.0])
            stamps[stamps == 0] = np.nan  # an error ended the run before
            self._times.add(step, stamps)

    def take(self, wait: bool = False) -> list[TimedRun]:
        """Return the runs since the last call."""
        self._work_out()
        return self._times.take()

    def shortest(self, wait: bool = False) -> list[float]:
        """The shortest time of each step."""
        self._work_out()
        return self._times.shortest()


_MONOTONIC = 1  # the clock of perf_counter_ns on Linux


@cache
def system_clock() -> int:
    """The address of the function that writes a clock's time to an address; 0 where the system has none."""
    if sys.platform != "linux":
        return 0
    return ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0


class WorkClock:
    """Times work by the GPU's clock, without waiting. Its queries are used again."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: list[Queries] = []
        self._exists: bool | None = None

    def begin(self) -> TimedWork | None:
        """Begin to time what is submitted from now on; None if the GPU has no clock. The context is current."""
        if self._exists is None:
            self._exists = _has_clock(self._device.gl)
        if not self._exists:
            return None
        if not self._free:
            made = (ctypes.c_uint * 2)()
            self._device.gl.glGenQueries(2, made)
            self._free.append(made)
        return TimedWork(self._device, self._free)

    def __del__(self) -> None:
        for queries in self._free:
            self._device.free_later(partial(self._device.gl.glDeleteQueries, 2, queries))


class TimedWork:
    """Work between two timestamps of the GPU."""

    def __init__(self, device: Device, free: list[Queries]) -> None:
        self._device, self._free = device, free
        self._queries: Queries | None = free.pop()
        self._submission = self._seconds = 0.0
        device.gl.glQueryCounter(self._queries[0], TIMESTAMP)

    def end(self, submission: float) -> None:
        """All is submitted, in `submission` seconds: a frame waits at least that long. The context is current."""
        assert self._queries is not None
        self._submission = submission
        self._device.gl.glQueryCounter(self._queries[1], TIMESTAMP)

    @property
    def seconds(self) -> float | None:
        """The GPU's time, or the submission's if that is longer. None while the GPU is not done."""
        if self._queries is not None:
            there, gl = ctypes.c_int(), self._device.gl
            with self._device.current():
                gl.glGetQueryObjectiv(self._queries[1], _AVAILABLE, ctypes.byref(there))
                if not there.value:
                    return None
                stamps = (ctypes.c_uint64 * 2)()
                for index, query in enumerate(self._queries):
                    gl.glGetQueryObjectui64v(query, _RESULT, ctypes.addressof(stamps) + 8 * index)
            self._seconds = max((stamps[1] - stamps[0]) / 1e9, self._submission)
            self._free.append(self._queries)
            self._queries = None
        return self._seconds

    def __del__(self) -> None:
        if self._queries is not None:
            self._device.free_later(partial(self._device.gl.glDeleteQueries, 2, self._queries))


def _has_clock(gl: Any) -> bool:
    """Whether the driver's timestamps have bits: one without a clock has none."""
    bits = ctypes.c_int()
    gl.glGetQueryiv(TIMESTAMP, _COUNTER_BITS, ctypes.byref(bits))
    return bits.value > 0


def _now(gl: Any) -> int:
    """The GPU's time in nanoseconds, after what was submitted so far."""
    value = ctypes.c_int64()
    gl.glGetInteger64v(TIMESTAMP, ctypes.byref(value))
    return value.value
