"""The timers of steps: nothing waits for a GPU that is late, and nothing is timed unless it was asked for."""

from __future__ import annotations

import ctypes
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.gl.timers import RUNS, StepTimers
from small import load, node


class LateGL:
    """GL whose clock goes on by a second with each timestamp; results arrive when `is_there` is set."""

    def __init__(self) -> None:
        self.now, self.is_there, self.waits, self.bits = 0, False, 0, 64
        self.stamps: dict[int, int] = {}

    def glGetQueryiv(self, _target: int, _what: int, value: Any) -> None:
        value._obj.value = self.bits

    def glGetInteger64v(self, _what: int, value: Any) -> None:
        value._obj.value = self.now * 10**9

    def glGenQueries(self, count: int, names: Any) -> None:
        names[:] = range(1, count + 1)

    def glQueryCounter(self, query: int, _target: int) -> None:
        self.now += 1
        self.stamps[query] = self.now * 10**9

    def glGetQueryObjectiv(self, _query: int, _what: int, value: Any) -> None:
        value._obj.value = self.is_there

    def glGetQueryObjectui64v(self, query: int, _what: int, value: Any) -> None:
        self.waits += not self.is_there
        value._obj.value = self.stamps[query]

    def glDeleteQueries(self, count: int, names: ctypes.Array[Any]) -> None:
        self.stamps.clear()


def make(gl: LateGL, steps: int) -> StepTimers:
    device: Any = SimpleNamespace(gl=gl, free_later=lambda free: free())
    return StepTimers(device, steps)


def test_a_late_gpu_is_not_waited_for() -> None:
    gl, launched = LateGL(), []
    timers = make(gl, 2)
    for run in range(3 * RUNS):
        timers.run(0, [partial(launched.append, run), lambda: None])
    assert launched == list(range(3 * RUNS))
    assert len(gl.stamps) == gl.now == RUNS * 3, "runs beyond the ring are not timed"
    assert gl.waits == 0 and timers.shortest == [np.inf, np.inf]
    gl.is_there = True
    timers.run(1, [lambda: None])
    assert timers.shortest == [1, 1] and gl.now == RUNS * 3 + 2
    timers.read()
    del timers
    assert gl.stamps == {}, "queries are deleted"


def test_the_shortest_time_stays() -> None:
    gl = LateGL()
    gl.is_there = True
    timers = make(gl, 1)

    def sleep(seconds: int) -> None:
        gl.now += seconds

    for seconds in (5, 2, 7):
        timers.run(0, [partial(sleep, seconds)])
    timers.read()
    assert timers.shortest == [3]


def test_a_driver_without_a_clock_times_nothing() -> None:
    gl, launched = LateGL(), []
    gl.bits = 0
    make(gl, 1).run(0, [partial(launched.append, 1)])
    assert launched == [1] and gl.now == 0


@pytest.mark.parametrize("gpu", ["gpu_compute", "gpu_pixel"])
def test_timers_are_off_by_default(gpu: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [3]}), gpu, gl_context) as worker:
        stamps = []
        monkeypatch.setattr(worker._backend.device.gl, "glQueryCounter", lambda *stamp: stamps.append(stamp))
        worker.schedule(np.ones(3, np.float32))
        assert not stamps
        worker.time_steps()
        worker.schedule(np.ones(3, np.float32))
        assert len(stamps) == 2
