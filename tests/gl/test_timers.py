"""The timers of steps: nothing waits for a GPU that is late, and nothing is timed unless it was asked for."""

from __future__ import annotations

import ctypes
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.gl.program.timers import RUNS, CallTimers, QueryTimers, system_clock
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


def make(gl: LateGL, steps: int) -> QueryTimers:
    device: Any = SimpleNamespace(gl=gl, free_later=lambda free: free())
    return QueryTimers(device, steps)


def stamp(gl: LateGL, timers: QueryTimers, step: int, *seconds: int) -> bool:
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
    assert timers.shortest() == [1, 1]
    runs = timers.take()
    assert len(runs) == RUNS + 1 and timers.take() == []
    assert runs[-1].begin == 1 and np.diff(runs[-1].stamps).tolist() == [10**9]
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
        if gl.is_there:
            found += [(np.diff(run.stamps) / 1e9).tolist() for run in timers.take()]
            waiting.clear()
    assert len(found) > 100 and found == expected[: len(found)]


def test_the_shortest_time_stays() -> None:
    gl = LateGL()
    gl.is_there = True
    timers = make(gl, 1)
    for seconds in (5, 3, 7):
        stamp(gl, timers, 0, 1, 1 + seconds)
    assert timers.shortest() == [3]


def test_a_driver_without_a_clock_times_nothing() -> None:
    gl = LateGL()
    gl.bits = 0
    assert make(gl, 1).begin(0, 2) is None


def test_a_run_that_an_error_ends_has_no_times() -> None:
    """The CPU's clock writes its times into words that the run was given."""
    device: Any = None
    timers = CallTimers(device, 2)
    for broken in (False, True, False):
        addresses = timers.begin(0, 3)
        assert addresses is not None
        for index, address in enumerate(addresses.tolist()[: 1 if broken else 3]):
            (ctypes.c_int64 * 2).from_address(address)[:] = 7 + index, 500 * index
    times = [np.diff(run.stamps) for run in timers.take()]
    assert len(times) == 3 and timers.take() == []
    np.testing.assert_array_equal(times, [[10**9 + 500] * 2, [np.nan] * 2, [10**9 + 500] * 2])
    assert timers.shortest() == [1 + 5e-7] * 2


def test_llvmpipe_computes_without_queries(gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query costs llvmpipe more than many a layer takes. Times lie within the run, by the CPU's clock."""
    if gl_context.version_code < 430 or not gl_context.info["GL_RENDERER"].startswith("llvmpipe"):
        pytest.skip("needs llvmpipe with GL 4.3")
    if not system_clock():
        pytest.skip("the system has no clock that native code may call")
    model = load([node("MatMul", "x w", "y")], {"x": [96, 96]}, "y", {"w": np.ones((96, 96), np.float32)})
    with pf.Worker(model, "gpu_compute", gl_context) as worker:
        worker.schedule(np.ones((96, 96), np.float32))
        worker.time_steps()
        monkeypatch.setattr(worker._own.backend.device.gl, "glGenQueries", None)  # type: ignore[attr-defined]
        before = time.perf_counter_ns()
        for _ in range(3):
            worker.schedule(np.ones((96, 96), np.float32))
        after = time.perf_counter_ns()
        (segment,) = next(worker.parts.planned_parts()).latest_plan.segments  # type: ignore[union-attr]
        runs = segment.take_runs()
    assert len(runs) == 3
    stamps = np.concatenate([run.stamps for run in runs])
    assert before < stamps[0] and stamps[-1] < after and (np.diff(stamps) >= 0).all()


def test_timers_are_off_by_default(where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [3]}), where, gl_context) as worker:
        gl = worker._own.backend.device.gl
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
        assert made == ([] if worker._own.backend.timers is CallTimers else [RUNS * 2])  # type: ignore[attr-defined]
