"""The GPU's time of each step: timestamps that the GPU writes between steps, read when they are there.

GL 3.3 has timestamps (ARB_timer_query). Unlike a query of elapsed time, one may be written while a query of the
application runs.
"""

from __future__ import annotations

import ctypes
import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from time import perf_counter_ns
from typing import Any

import numpy as np

from perframe.backends.gl.context import Device
from perframe.backends.protocol import TimedRun

KEPT = 64  # runs whose times nobody has taken
RUNS = 4  # so many runs wait for their times at most; a run beside them is not timed
_TIMESTAMP, _COUNTER_BITS, _RESULT, _AVAILABLE = 0x8E28, 0x8864, 0x8866, 0x8867


class StepTimers:
    """Times the steps of a program. `shortest` has the shortest time of each in seconds, infinite before the first, and
    `runs` the last runs by the CPU's clock.

    A run never waits for the times of earlier ones: they are read when the GPU has written them, runs later.
    """

    def __init__(self, device: Device, steps: int) -> None:
        self.shortest = [math.inf] * steps
        self._device, self._most = device, RUNS * (steps + 1)
        self._free: list[int] = []
        self._pending: deque[tuple[int, list[int]]] = deque()  # the first step, and a query before each and at the end
        bits = ctypes.c_int()
        device.gl.glGetQueryiv(_TIMESTAMP, _COUNTER_BITS, ctypes.byref(bits))
        self._names = _generate(device.gl, self._most) if bits.value else []  # a driver without a clock has no bits
        self._free += self._names
        self.runs: deque[TimedRun] = deque(maxlen=KEPT)
        self._ahead = perf_counter_ns() - _now(device.gl) if self._names else 0  # of the CPU's clock

    def run(self, begin: int, launches: Sequence[Callable[[], None]]) -> None:
        """Launch consecutive steps, the first of which is number `begin`, with timestamps around each if some are free.

        The context is current.
        """
        self.read()
        count = len(launches) + 1
        if len(self._free) < count:
            for launch in launches:
                launch()
            return
        taken = [self._free.pop() for _ in range(count)]
        stamp = self._device.gl.glQueryCounter
        for query, launch in zip(taken, launches, strict=False):
            stamp(query, _TIMESTAMP)
            launch()
        stamp(taken[-1], _TIMESTAMP)
        self._pending.append((begin, taken))

    def read(self, wait: bool = False) -> None:
        """Read the times that are there; with `wait`, block for those of all runs. The context is current."""
        gl, there, value = self._device.gl, ctypes.c_int(), ctypes.c_uint64()
        while self._pending:
            begin, taken = self._pending[0]
            if not wait:
                gl.glGetQueryObjectiv(taken[-1], _AVAILABLE, ctypes.byref(there))
                if not there.value:
                    return
            times = []
            for query in taken:
                gl.glGetQueryObjectui64v(query, _RESULT, ctypes.byref(value))
                times.append(value.value)
            self.runs.append(TimedRun(begin, np.array(times, np.float64) + self._ahead))
            for index, (start, end) in enumerate(pairwise(times), begin):
                self.shortest[index] = min(self.shortest[index], max(0, end - start) / 1e9)
            self._free += taken
            self._pending.popleft()

    def __del__(self) -> None:
        if self._names:
            names = (ctypes.c_uint * len(self._names))(*self._names)
            self._device.free_later(partial(self._device.gl.glDeleteQueries, len(names), names))


def _now(gl: Any) -> int:
    """The GPU's time in nanoseconds, after what was submitted so far."""
    value = ctypes.c_int64()
    gl.glGetInteger64v(_TIMESTAMP, ctypes.byref(value))
    return value.value


def _generate(gl: Any, count: int) -> list[int]:
    names = (ctypes.c_uint * count)()
    gl.glGenQueries(count, names)
    return list(names)
