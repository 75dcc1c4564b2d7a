"""Frames after the first: nothing stays allocated, brief runs need no other thread, and idle workers use no CPU."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe.backends.cpu.program import program
from perframe.backends.cpu.threads import jobs
from small import Gate, load, node, row

MEGABYTE = 1 << 20
FRAMES = 1000
LITTLE = 16 * FRAMES  # bytes: less than one object in each frame; Python keeps some freed objects


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that traces sizes beside the frames allocates too."""
    monkeypatch.setenv("PERFRAME_FOLLOW", "0")


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that were handed to worker threads."""
    calls: list[Any] = []
    schedule = jobs.schedule

    def count(*arguments: Any, **options: Any) -> jobs.ThreadJob:
        calls.append(arguments)
        return schedule(*arguments, **options)

    monkeypatch.setattr(jobs, "schedule", count)
    return calls


@pytest.fixture
def total() -> pf.Model:
    return load([node("Neg", "x", "n"), node("ReduceSum", "n", "y", keepdims=0)], {"x": ["n"]})


@pytest.fixture(params=["brief", "long"])
def duration(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Sets whether runs count as brief, independent of their time."""
    monkeypatch.setattr(program, "BRIEF", 10**12 if request.param == "brief" else 0)
    return str(request.param)


def allocated_by(frame: Callable[[], object], frames: int) -> tuple[int, int]:
    """Bytes that stay after many frames, and the largest number of bytes that a frame had allocated at once."""
    for _ in range(50):
        frame()
    collect_garbage()
    tracemalloc.start()
    try:
        for _ in range(50):
            frame()
        collect_garbage()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(frames):
            frame()
        peak = tracemalloc.get_traced_memory()[1]
        collect_garbage()
        return tracemalloc.get_traced_memory()[0] - before, peak - before
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_frames_leave_nothing_behind(total: pf.Model, duration: str) -> None:
    x = np.ones(MEGABYTE // 4, np.float32)
    with pf.Worker(total) as worker:
        stays, peak = allocated_by(lambda: worker.schedule({"x": x}).peek_output().download_to_array(), FRAMES)
    assert stays < LITTLE and peak < MEGABYTE // 8  # the output is one number; the input has a megabyte


@pytest.mark.slow
def test_readbacks_and_tensors_leave_nothing_behind(total: pf.Model, duration: str) -> None:
    tensors = [pf.Tensor(np.full(MEGABYTE // 4, i, np.float32)) for i in range(3)]
    with pf.Worker(total) as worker:

        def frame() -> None:
            tensors.append(tensors.pop(0))
            worker.schedule(tensors[0]).peek_output().readback_request().result(wait=True)

        stays, peak = allocated_by(frame, FRAMES)
    assert stays < LITTLE and peak < MEGABYTE // 8


@pytest.mark.slow
def test_a_frame_that_drops_its_output_allocates_nothing(backend: str, backend_context: Any) -> None:
    model = load([node("Neg", "x", "y")], {"x": ["n"]})
    with pf.Worker(model, backend, backend_context) as worker:
        x = worker.empty_input(shape=(MEGABYTE // 4,))
        x.upload(np.ones(MEGABYTE // 4, np.float32))
        _, peak = allocated_by(lambda: worker.schedule(x).peek_output().download_to_array(), 100)
    assert peak < MEGABYTE // 8


def test_brief_runs_need_no_other_thread(
    total: pf.Model, scheduled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "BRIEF", 10**12)
    with pf.Worker(total) as worker:
        worker.schedule(row(1, 2)).peek_output().download_to_array()
        assert len(scheduled) == 1  # its time was not known
        for i in range(5):
            readback = worker.schedule(row(i, i)).peek_output().readback_request()
            assert readback.done and readback.result() == -2 * i
        assert len(scheduled) == 1
        assert list(worker.schedule_iterable(row(1, 2))) and worker.peek_output().download_to_array() == -3
        monkeypatch.setattr(program, "BRIEF", 0)
        worker.schedule(row(1, 2)).peek_output().download_to_array()
        assert len(scheduled) == 2


def test_a_brief_run_waits_for_the_jobs_before_it(total: pf.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "BRIEF", 10**12)
    gate, tensor = Gate(), pf.Tensor(row(1, 2))
    with pf.Worker(total) as worker:
        for _ in range(3):
            worker.schedule(tensor).peek_output().download_to_array()
        tensor.data_on_backend.write = gate  # type: ignore[attr-defined]
        first = worker.schedule(tensor).peek_output().readback_request()
        second = worker.schedule(pf.Tensor(row(5, 5))).peek_output().readback_request()
        assert not first.done and not second.done
        gate.open()
        assert second.result(wait=True) == -10 and first.result() == -3


def test_a_failed_brief_run_raises_when_its_values_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "BRIEF", 10**12)
    model = load(
        [node("Gather", "table index", "y")],
        {"index": [2]},
        constants={"table": row(1, 2, 3)},
        dtypes={"index": "int64"},
        optimize=False,
    )
    with pf.Worker(model) as worker, pf.Worker(load([node("Neg", "x", "z")], {"x": [2]}, "z")) as after:
        for _ in range(3):
            worker.schedule(np.array([0, 1])).peek_output().download_to_array()
            after.schedule(row(1, 2)).peek_output().download_to_array()
        y = worker.schedule(np.array([1, 99])).peek_output()
        z = after.schedule(y).peek_output()
        for tensor in (y, z):
            with pytest.raises(pf.PerframeError, match="y"):
                tensor.download_to_array()
            with pytest.raises(pf.PerframeError, match="y"):
                tensor.readback_request().result(wait=True)
        good = worker.schedule(np.array([2, -1])).peek_output()
        np.testing.assert_array_equal(good.download_to_array(), [3, 3])
        np.testing.assert_array_equal(after.schedule(good).peek_output().download_to_array(), [-3, -3])


@pytest.mark.quick(cases=0)
def test_an_idle_worker_uses_no_cpu(total: pf.Model) -> None:
    x = np.ones(MEGABYTE, np.float32)
    with pf.Worker(total) as worker:
        for _ in range(20):
            worker.schedule(x).peek_output().download_to_array()
        time.sleep(0.05)
        before = time.process_time()
        time.sleep(2)
        assert time.process_time() - before < 0.02  # 1 %
