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
_COUNTER_BITS, _RESULT, _AVAILABLE = 0x8864, 0x8866, 0x8867


class StepTimers:
    """Times the steps of a program. `runs` has the last runs by the CPU's clock.

    A run never waits for the times of earlier ones: they are read when the GPU has written them, runs later. The
    queries form a ring. Each run has some that follow each other, and native code writes and reads them.
    """

    def __init__(self, device: Device, steps: int) -> None:
        self._device = device
        self._shortest = np.full(steps, np.inf)
        bits = ctypes.c_int()
        device.gl.glGetQueryiv(TIMESTAMP, _COUNTER_BITS, ctypes.byref(bits))
        most = RUNS * (steps + 1) if bits.value else 0  # a driver without a clock has no bits
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


def _now(gl: Any) -> int:
    """The GPU's time in nanoseconds, after what was submitted so far."""
    value = ctypes.c_int64()
    gl.glGetInteger64v(TIMESTAMP, ctypes.byref(value))
    return value.value
