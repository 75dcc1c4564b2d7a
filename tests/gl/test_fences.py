"""Readbacks with a fence that the test holds: nothing waits unless asked, and each has the values of its own frame."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from gl.graphs import network
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.devices import device_for
from perframe.tensor.frames import current_frame

SHAPE = (1, 3, 4, 5)


class ManualFence:
    """A fence that the test opens. It counts waits while it is closed, and never hangs."""

    def __init__(self) -> None:
        self.done = False
        self.waits = 0

    def wait(self) -> None:
        self.waits += 1
        self.done = True


class Fences(list[ManualFence]):
    """The fences that were set, in order."""

    def make(self) -> ManualFence:
        self.append(ManualFence())
        return self[-1]

    @property
    def waits(self) -> int:
        return sum(fence.waits for fence in self)


@pytest.fixture
def device(gl_context: Any) -> Device:
    return device_for(gl_context)


@pytest.fixture
def fences(device: Device, monkeypatch: pytest.MonkeyPatch) -> Fences:
    """From here on the device makes fences that the test opens."""
    made = Fences()
    monkeypatch.setattr(device, "make_fence", made.make)
    return made


@pytest.fixture
def worker(where: str, gl_context: Any) -> Iterator[pf.Worker]:
    with pf.Worker(network(), where, gl_context, strict=True) as worker:
        yield worker


def run(worker: pf.Worker, value: float) -> pf.Tensor:
    """A frame whose every output is max(2 value - 0.5, 0)."""
    return worker.schedule(np.full(SHAPE, value, np.float32)).peek_output()


def test_a_request_never_waits(worker: pf.Worker, fences: Fences) -> None:
    y = run(worker, 1)
    assert not fences, "schedule() needs no fence"
    readback = y.readback_request()
    assert len(fences) == 1
    for _ in range(3):
        assert not readback.done and not y.is_readback_request_done()
        with pytest.raises(pf.ReadbackPendingError, match="wait=True"):
            readback.result()
    run(worker, 2)
    assert fences.waits == 0
    fences[0].done = True
    assert readback.done and y.is_readback_request_done()
    np.testing.assert_array_equal(readback.result(), np.full(SHAPE, 1.5, np.float32))
    assert fences.waits == 0


def test_only_wait_blocks_and_once(worker: pf.Worker, fences: Fences) -> None:
    readback = run(worker, 1).readback_request()
    np.testing.assert_array_equal(readback.result(wait=True), np.full(SHAPE, 1.5, np.float32))
    np.testing.assert_array_equal(readback.result(wait=True), readback.result())
    assert fences.waits == 1


def test_downloads_say_that_they_block_and_do(worker: pf.Worker, fences: Fences) -> None:
    y = run(worker, 1)
    assert y.download_to_array().max() == 1.5 and fences.waits == 1
    assert y.readback_and_clone().download_to_array().max() == 1.5 and fences.waits == 2


def test_readbacks_in_flight_have_the_values_of_their_frames(
    worker: pf.Worker, fences: Fences, monkeypatch: pytest.MonkeyPatch
) -> None:
    readbacks = []
    for index in range(4):
        monkeypatch.setattr(current_frame(), "index", 10 + index)
        readbacks.append(run(worker, 1 + index).readback_request())
    assert [readback.frame for readback in readbacks] == [10, 11, 12, 13]
    for index in (2, 0, 3, 1):  # in any order
        fences[index].done = True
        assert [readback.done for readback in readbacks] == [fence.done for fence in fences]
        np.testing.assert_array_equal(readbacks[index].result(), np.full(SHAPE, 1.5 + 2 * index, np.float32))
    assert fences.waits == 0


def test_an_upload_does_not_reach_a_readback_in_flight(where: str, gl_context: Any, fences: Fences) -> None:
    with pf.Worker(network(), where, gl_context) as worker:
        x = worker.empty_input("x", SHAPE)
    x.upload(np.full(SHAPE, 3, np.float32))
    readback = x.readback_request()
    x.upload(np.full(SHAPE, 4, np.float32))
    fences[0].done = True
    np.testing.assert_array_equal(readback.result(), np.full(SHAPE, 3, np.float32))
    assert fences.waits == 0


def test_await_in_asyncio(worker: pf.Worker, fences: Fences) -> None:
    y = run(worker, 1)

    async def main() -> pf.Tensor:
        asyncio.get_running_loop().call_soon(lambda: setattr(fences[0], "done", True))
        return await y.readback_and_clone_async()

    clone = asyncio.run(main())
    assert clone.backend_type is pf.BackendType.CPU and fences.waits == 0
    np.testing.assert_array_equal(clone.download_to_array(), np.full(SHAPE, 1.5, np.float32))


def test_many_await_at_once(worker: pf.Worker, fences: Fences) -> None:
    async def main() -> list[Any]:
        pending = [run(worker, 1 + index).readback_request() for index in range(3)]

        async def arrive() -> list[int]:
            for fence in reversed(fences):
                await asyncio.sleep(0)
                fence.done = True
            return []

        async def value(readback: pf.Readback) -> Any:
            return await readback

        *values, _ = await asyncio.gather(*map(value, pending), arrive())
        return values

    assert [value.max() for value in asyncio.run(main())] == [1.5, 3.5, 5.5]
    assert fences.waits == 0


def test_staging_buffers_come_back(
    worker: pf.Worker, fences: Fences, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From readbacks that were taken, and from those that were dropped before they arrived."""
    collect_garbage()  # free objects of earlier tests
    monkeypatch.setattr(device, "_staging", {})
    y = run(worker, 1)
    readbacks = [y.readback_request() for _ in range(3)]
    known = device.allocations
    for readback in readbacks:
        readback.result(wait=True)
    readbacks = [y.readback_request() for _ in range(3)]
    assert device.allocations == known
    readbacks.clear()
    y.readback_request()  # the tensor knows its last request
    collect_garbage()
    readbacks = [y.readback_request() for _ in range(2)]
    assert device.allocations == known
    readbacks.append(y.readback_request())
    readbacks.append(y.readback_request())
    assert device.allocations == known + 1, "this test does not see buffers"


def test_a_readback_outlives_its_tensor_and_worker(where: str, gl_context: Any, fences: Fences) -> None:
    with pf.Worker(network(), where, gl_context) as worker:
        readback = run(worker, 2).readback_request()
    del worker
    collect_garbage()
    with device_for(gl_context).using():
        pass
    fences[0].done = True
    np.testing.assert_array_equal(readback.result(), np.full(SHAPE, 3.5, np.float32))


def test_drivers_own_fences_arrive(worker: pf.Worker) -> None:
    """Without a fence of ours: polling alone, with no flush by hand, gets there."""
    readback = run(worker, 1).readback_request()
    polls = 0
    while not readback.done:
        polls += 1
        assert polls < 10**6, "the fence never arrives"
    np.testing.assert_array_equal(readback.result(), np.full(SHAPE, 1.5, np.float32))


def test_a_lost_context_is_an_error(worker: pf.Worker, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    readback = run(worker, 1).readback_request()
    monkeypatch.setattr(device.gl, "glClientWaitSync", lambda *_: 0x911D)
    with pytest.raises(pf.BackendError, match="context was lost"):
        _ = readback.done
