"""The timers of steps: nothing waits for a GPU that is late, and nothing is timed unless it was asked for."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.gl.timers import RUNS, StepTimers
from small import load, node


class LateGL:
    """GL whose results arrive when `is_there` is set. Native code calls `read`, like GL's own function."""

    def __init__(self) -> None:
        self.is_there, self.waits, self.bits = False, 0, 64
        self.stamps: dict[int, int] = {}  # seconds by the query's name
        self._read = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(self.read)
        self.addresses = {"glGetQueryObjectui64v": ctypes.cast(self._read, ctypes.c_void_p).value}

    def read(self, query: int, _what: int, target: int) -> None:
        self.waits += not self.is_there
        ctypes.c_int64.from_address(target).value = self.stamps[query] * 10**9

    def glGetQueryiv(self, _target: int, _what: int, value: Any) -> None:
        value._obj.value = self.bits

    def glGetInteger64v(self, _what: int, value: Any) -> None:
        value._obj.value = 0

    def glGenQueries(self, count: int, names: Any) -> None:
        for index in range(count):
            names[index] = index + 1

    def glGetQueryObjectiv(self, _query: int, _what: int, value: Any) -> None:
        value._obj.value = self.is_there

    def glDeleteQueries(self, count: int, names: Any) -> None:
        for index in range(count):
            self.stamps.pop(names[index], None)


def make(gl: LateGL, steps: int) -> StepTimers:
    device: Any = SimpleNamespace(gl=gl, free_later=lambda free: free())
    return StepTimers(device, steps)


def stamp(gl: LateGL, timers: StepTimers, step: int, *seconds: int) -> bool:
    """A run whose steps end at these seconds after the first of them. Returns whether it is timed."""
    queries = timers.begin(step, len(seconds))
    gl.stamps.update(zip([] if queries is None else queries.tolist(), seconds, strict=False))
    return queries is not None


def test_a_late_gpu_is_not_waited_for() -> None:
    gl = LateGL()
    timers = make(gl, 2)
    timed = [stamp(gl, timers, 0, 0, 1, 3) for _ in range(3 * RUNS)]
    assert timed == [True] * RUNS + [False] * 2 * RUNS, "runs beyond the ring are not timed"
    assert gl.waits == 0 and timers.shortest() == [np.inf, np.inf]
    gl.is_there = True
    assert stamp(gl, timers, 1, 5, 6)
    assert timers.shortest() == [1, 2]
    timers.read()
    assert timers.shortest() == [1, 1] and len(timers.runs) == RUNS + 1
    assert timers.runs[-1].begin == 1 and np.diff(timers.runs[-1].stamps).tolist() == [10**9]
    del timers
    assert gl.stamps == {}, "queries are deleted"


def test_queries_of_pieces_go_round() -> None:
    """Runs of many lengths, some of which are read late. No two runs that wait have a query in common."""
    gl, random = LateGL(), np.random.default_rng(0)
    timers, now, waiting = make(gl, 5), 0, list[set[int]]()
    expected, found = list[list[int]](), list[list[int]]()
    for _ in range(400):
        gl.is_there = bool(random.integers(2))
        if gl.is_there:
            waiting.clear()
        count = int(random.integers(2, 7))
        queries = timers.begin(0, count)
        if queries is None:
            assert sum(map(len, waiting)) > 6 * RUNS - 2 * count, "there is room for one more on neither side"
            continue
        taken = set(queries.tolist())
        assert len(taken) == count and not any(taken & others for others in waiting)
        waiting.append(taken)
        times = np.cumsum(random.integers(1, 9, count)) + now
        gl.stamps.update(zip(queries.tolist(), times.tolist(), strict=True))
        expected.append(np.diff(times).tolist())
        now = int(times[-1])
        found += [(np.diff(run.stamps) / 1e9).tolist() for run in timers.runs]
        timers.runs.clear()
    assert len(found) > 100 and found == expected[: len(found)]


def test_the_shortest_time_stays() -> None:
    gl = LateGL()
    gl.is_there = True
    timers = make(gl, 1)
    for seconds in (5, 3, 7):
        stamp(gl, timers, 0, 1, 1 + seconds)
    timers.read()
    assert timers.shortest() == [3]


def test_a_driver_without_a_clock_times_nothing() -> None:
    gl = LateGL()
    gl.bits = 0
    assert make(gl, 1).begin(0, 2) is None


def test_timers_are_off_by_default(where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [3]}), where, gl_context) as worker:
        gl = worker._backend.device.gl
        generate, made = gl.glGenQueries, list[int]()

        def note(count: int, names: Any) -> None:
            made.append(count)
            generate(count, names)

        monkeypatch.setattr(gl, "glGenQueries", note)
        worker.schedule(np.ones(3, np.float32))
        assert not made
        worker.time_steps()
        for _ in range(3):
            worker.schedule(np.ones(3, np.float32))
        assert made == [RUNS * 2]
