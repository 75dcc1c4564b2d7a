"""The GPU's time of each step: timestamps that the GPU writes between steps, read when they are there.

GL 3.3 has timestamps (ARB_timer_query). Unlike a query of elapsed time, one may be written while a query of the
application runs.
"""

from __future__ import annotations

import ctypes
from collections import deque
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.gl.context import Device
from perframe.backends.gl.replay import CommandList
from perframe.backends.protocol import KEPT, TimedRun

RUNS = 4  # so many runs wait for their times at most; a run beside them is not timed
TIMESTAMP = 0x8E28
Queries = ctypes.Array[ctypes.c_uint]  # the names of two
_COUNTER_BITS, _RESULT, _AVAILABLE = 0x8864, 0x8866, 0x8867


class StepTimers:
    """Times the steps of a program. `runs` has the last runs by the CPU's clock.

    A run never waits for the times of earlier ones: they are read when the GPU has written them, runs later. The
    queries form a ring. Each run has some that follow each other, and native code writes and reads them.
    """

    def __init__(self, device: Device, steps: int) -> None:
        self._device = device
        self._shortest = np.full(steps, np.inf)
        most = RUNS * (steps + 1) if _has_clock(device.gl) else 0
        self._queries = (ctypes.c_uint * most)()
        device.gl.glGenQueries(most, self._queries)
        self._names = np.array(self._queries, np.uint32)
        self._times = np.zeros(most, np.int64)
        self._reads = CommandList(device.gl, {})
        for index, name in enumerate(self._names.tolist()):
            self._reads.call("glGetQueryObjectui64v", name, _RESULT, self._times.ctypes.data + 8 * index)
        self._reads.finish()
        self._next = 0  # the first query of the next run
        self._pending: deque[tuple[int, int, int]] = deque()  # of each run: its first step, its first query, how many
        self.runs: deque[TimedRun] = deque(maxlen=KEPT)
        self._ahead = perf_counter_ns() - _now(device.gl) if most else 0  # of the CPU's clock

    def begin(self, step: int, count: int) -> NDArray[np.uint32] | None:
        """Return queries for a run of consecutive steps, the first of which is number `step`: one before each and one
        after the last, so many in all. None if no more are free. The context is current.
        """
        self.read()
        first = self._room(count)
        if first is None:
            return None
        self._pending.append((step, first, count))
        self._next = first + count
        return self._names[first : first + count]

    def _room(self, count: int) -> int | None:
        """The first of so many free queries that follow each other in the ring."""
        if not self._pending:
            return 0 if count <= len(self._names) else None
        oldest = self._pending[0][1]
        if self._next <= oldest:  # the newest runs lie before the oldest
            return self._next if self._next + count <= oldest else None
        if self._next + count <= len(self._names):
            return self._next
        return 0 if count <= oldest else None

    def read(self, wait: bool = False) -> None:
        """Read the times that are there; with `wait`, block for those of all runs. The context is current."""
        there = ctypes.c_int()
        while self._pending:
            step, first, count = self._pending[0]
            if not wait:
                self._device.gl.glGetQueryObjectiv(int(self._names[first + count - 1]), _AVAILABLE, ctypes.byref(there))
                if not there.value:
                    return
            self._reads.run_some(first, first + count)
            stamps = self._times[first : first + count].astype(np.float64) + self._ahead
            shortest = self._shortest[step : step + count - 1]
            np.minimum(shortest, np.maximum(np.diff(stamps), 0) / 1e9, out=shortest)
            self.runs.append(TimedRun(step, stamps))
            self._pending.popleft()

    def shortest(self) -> list[float]:
        """The shortest time of each step in seconds, infinite before the first."""
        found: list[float] = self._shortest.tolist()
        return found

    def __del__(self) -> None:
        if len(self._names):
            self._device.free_later(partial(self._device.gl.glDeleteQueries, len(self._names), self._queries))


class WorkClock:
    """Times pieces of work by the GPU's clock, without waiting. Its queries are used again."""

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
        """All is submitted, which took so many seconds: a frame waits at least that long. The context is current."""
        assert self._queries is not None
        self._submission = submission
        self._device.gl.glQueryCounter(self._queries[1], TIMESTAMP)

    @property
    def seconds(self) -> float | None:
        """What the GPU took, or the submission if that is more. None while the GPU is not done."""
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
