"""Frames that overlap on the CPU: nothing waits without need, and every readback keeps its own frame's values."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import perframe as pf
from perframe.backends.cpu.threads import jobs
from small import Gate, gated, load, node, row


@pytest.fixture
def double() -> pf.Model:
    return load([node("Add", "x x", "y")], {"x": [3]})


def test_schedule_returns_before_the_values_exist(double: pf.Model) -> None:
    gate = Gate()
    with pf.Worker(double) as worker:
        y = worker.schedule(gated(row(1, 2, 3), gate)).peek_output()
        readback = y.readback_request()
        assert not readback.done
        with pytest.raises(pf.ReadbackPendingError, match="y"):
            readback.result()
        gate.open()
        np.testing.assert_array_equal(readback.result(wait=True), [2, 4, 6])


def test_readbacks_of_two_frames_keep_their_values(double: pf.Model) -> None:
    gate = Gate()
    with pf.Worker(double) as worker:
        first = worker.schedule(gated(row(1, 1, 1), gate)).peek_output().readback_request()
        second = worker.schedule(pf.Tensor(row(5, 5, 5))).peek_output().readback_request()
        assert not first.done and not second.done
        gate.open()
        np.testing.assert_array_equal(second.result(wait=True), [10, 10, 10])
        np.testing.assert_array_equal(first.result(wait=True), [2, 2, 2])


def test_many_frames_in_flight(double: pf.Model) -> None:
    gate = Gate()
    with pf.Worker(double) as worker:
        tensors = [gated(row(i, i, i), gate) for i in range(20)]
        readbacks = [worker.schedule(tensor).peek_output().readback_request() for tensor in tensors]
        gate.open()
        for i, readback in enumerate(readbacks):
            np.testing.assert_array_equal(readback.result(wait=True), [2 * i] * 3)


def test_an_upload_waits_for_the_frame_that_reads(double: pf.Model) -> None:
    with pf.Worker(double) as worker:
        tensor = pf.Tensor(row(1, 1, 1))
        readbacks = []
        for i in range(20):
            tensor.upload(row(i, i, i))
            readbacks.append(worker.schedule(tensor).peek_output().readback_request())
        for i, readback in enumerate(readbacks):
            np.testing.assert_array_equal(readback.result(wait=True), [2 * i] * 3)


def test_workers_in_a_chain(double: pf.Model) -> None:
    """The output of one is the input of the next, without a copy and without waiting."""
    gate = Gate()
    with pf.Worker(double) as first, pf.Worker(double) as second, pf.Worker(double) as third:
        between = first.schedule(gated(row(1, 2, 3), gate)).peek_output()
        end = third.schedule(second.schedule(between).peek_output()).peek_output()
        readback = end.readback_request()
        assert not readback.done
        first.schedule(pf.Tensor(row(0, 0, 0)))  # overwrites the input that the second still has to read
        gate.open()
        np.testing.assert_array_equal(readback.result(wait=True), [8, 16, 24])


def test_a_worker_may_feed_itself(double: pf.Model) -> None:
    with pf.Worker(double) as worker:
        state = pf.Tensor(row(1, 2, 3))
        for _ in range(5):
            state = worker.schedule(state).peek_output().readback_and_clone()
        np.testing.assert_array_equal(state.download_to_array(), [32, 64, 96])


def test_await_an_output(double: pf.Model) -> None:
    async def main() -> pf.Tensor:
        with pf.Worker(double) as worker:
            gate = Gate()
            y = worker.schedule(gated(row(1, 2, 3), gate)).peek_output()
            asyncio.get_running_loop().call_soon(gate.open)
            return await y.readback_and_clone_async()

    np.testing.assert_array_equal(asyncio.run(main()).download_to_array(), [2, 4, 6])


def test_release_waits_for_pending_runs(double: pf.Model) -> None:
    gate = Gate()
    worker = pf.Worker(double)
    readback = worker.schedule(gated(row(1, 2, 3), gate)).peek_output().readback_request()
    opener = jobs.schedule(gate.open)
    worker.release()
    opener.wait()
    assert readback.done
    np.testing.assert_array_equal(readback.result(), [2, 4, 6])


def test_a_job_may_depend_on_a_tensor(double: pf.Model) -> None:
    """Users do so with their own functions."""
    gate, seen = Gate(), []
    with pf.Worker(double) as worker:
        y = worker.schedule(gated(row(1, 2, 3), gate)).peek_output()
        storage = y.data_on_backend
        job = jobs.schedule(lambda: seen.append(y.download_to_array().tolist()), depends_on=storage.fences)  # type: ignore[attr-defined]
        assert not job.done
        gate.open()
        job.wait()
    assert seen == [[2, 4, 6]]


# --- failures during a run --------------------------------------------------------------------------------------------


@pytest.fixture
def lookup() -> pf.Model:
    """Indices that are known only when it runs may be out of range."""
    return load(
        [node("Gather", "table index", "picked"), node("Neg", "picked", "y")],
        {"index": [2]},
        constants={"table": row(1, 2, 3)},
        dtypes={"index": "int64"},
        optimize=False,
    )


def test_a_failure_names_the_layer_and_reaches_every_reader(lookup: pf.Model) -> None:
    with pf.Worker(lookup) as worker:
        y = worker.schedule(np.array([1, 99])).peek_output()
        with pytest.raises(pf.PerframeError, match="picked"):
            y.download_to_array()
        with pytest.raises(pf.PerframeError, match="picked"):
            y.readback_request().result(wait=True)


def test_a_failure_reaches_a_readback_that_only_polls(lookup: pf.Model) -> None:
    with pf.Worker(lookup) as worker:
        y = worker.schedule(np.array([1, 99])).peek_output()
        readback = y.readback_request()
        with pytest.raises(pf.PerframeError):
            y.download_to_array()
        assert readback.done
        with pytest.raises(pf.PerframeError, match="picked"):
            readback.result()


def test_the_next_frame_is_a_new_one(lookup: pf.Model) -> None:
    with pf.Worker(lookup) as worker:
        bad = worker.schedule(np.array([1, 99])).peek_output().readback_request()
        with pytest.raises(pf.PerframeError):
            bad.result(wait=True)
        good = worker.schedule(np.array([1, -1])).peek_output().download_to_array()
        np.testing.assert_array_equal(good, [-2, -3])


def test_a_frame_many_runs_ahead_does_not_wait() -> None:
    """Each run has its own copy of its uploaded inputs."""
    gate, tensor = Gate(), pf.Tensor(row(1, 2, 3))
    tensor.data_on_backend.write = gate  # type: ignore[attr-defined]
    with pf.Worker(load([node("Add", "x y", "z")], {"x": [3], "y": [3]}, "z")) as worker:
        requests = [worker.schedule(row(i, i, i), tensor).peek_output().readback_request() for i in range(20)]
        assert not any(request.done for request in requests)
        gate.open()
        for i, request in enumerate(requests):
            np.testing.assert_array_equal(request.result(wait=True), row(1 + i, 2 + i, 3 + i))
