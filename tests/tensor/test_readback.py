"""Downloads that may not have arrived: polled, awaited, or waited for on request. The tests open the fence."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.tensor.frames import FrameState, current_frame
from perframe.tensor.readback import Readback


class ManualFence:
    """A fence that a test opens. It counts the waits while it is closed."""

    def __init__(self) -> None:
        self.done = False
        self.waits = 0

    def wait(self) -> None:
        """A wait that a test did not ask for would hang; here it ends."""
        self.waits += not self.done
        self.done = True


@pytest.fixture
def fence() -> ManualFence:
    return ManualFence()


@pytest.fixture
def tensor(fence: ManualFence) -> pf.Tensor:
    """A tensor that is still being written until the fence opens."""
    tensor = pf.Tensor(np.zeros(3, np.float32))
    tensor.name = "scores"
    tensor.data_on_backend.write = fence  # type: ignore[attr-defined]
    return tensor


def write(tensor: pf.Tensor, value: float) -> None:
    tensor.data_on_backend.view((3,), pf.DataType.FLOAT32)[:] = value  # type: ignore[attr-defined]


def test_a_request_never_waits(tensor: pf.Tensor, fence: ManualFence) -> None:
    readback = tensor.readback_request()
    assert not readback.done and not tensor.is_readback_request_done()
    with pytest.raises(pf.ReadbackPendingError, match=r"scores.*wait=True"):
        readback.result()
    assert fence.waits == 0
    write(tensor, 5)
    fence.done = True
    assert readback.done and tensor.is_readback_request_done()
    np.testing.assert_array_equal(readback.result(), [5, 5, 5])
    assert fence.waits == 0


def test_only_wait_blocks(tensor: pf.Tensor, fence: ManualFence) -> None:
    readback = tensor.readback_request()
    write(tensor, 2)
    np.testing.assert_array_equal(readback.result(wait=True), [2, 2, 2])
    assert fence.waits == 1
    np.testing.assert_array_equal(readback.result(), [2, 2, 2])


def test_the_values_are_those_of_the_request(tensor: pf.Tensor, fence: ManualFence) -> None:
    """The next writer waits until the snapshot is taken."""
    readback = tensor.readback_request()
    write(tensor, 1)
    fence.done = True
    for pending in tensor.data_on_backend.fences:  # type: ignore[attr-defined]
        pending.wait()
    write(tensor, 9)
    np.testing.assert_array_equal(readback.result(), [1, 1, 1])


def test_an_upload_lets_the_readback_have_its_values(tensor: pf.Tensor, fence: ManualFence) -> None:
    readback = tensor.readback_request()
    write(tensor, 4)
    tensor.upload(np.full(3, 8, np.float32))
    np.testing.assert_array_equal(readback.result(), [4, 4, 4])
    np.testing.assert_array_equal(tensor.download_to_array(), [8, 8, 8])


def test_no_request_is_not_done() -> None:
    assert not pf.Tensor(np.zeros(3)).is_readback_request_done()


def test_it_knows_the_frame_it_was_asked_in(tensor: pf.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_frame(), "index", 41)
    assert tensor.readback_request().frame == 41


def test_await_in_asyncio(tensor: pf.Tensor, fence: ManualFence) -> None:
    async def main() -> pf.Tensor:
        def finish() -> None:
            write(tensor, 3)
            fence.done = True

        asyncio.get_running_loop().call_soon(finish)
        return await tensor.readback_and_clone_async()

    clone = asyncio.run(main())
    np.testing.assert_array_equal(clone.download_to_array(), [3, 3, 3])
    assert fence.waits == 0


def test_await_in_another_loop_gives_way_once_a_frame(tensor: pf.Tensor, fence: ManualFence) -> None:
    steps: Generator[None, None, np.ndarray] = Readback(tensor.data_on_backend.request((3,), tensor.dtype)).__await__()
    assert next(steps) is None
    assert next(steps) is None
    fence.done = True
    with pytest.raises(StopIteration) as ended:
        next(steps)
    assert ended.value.value.shape == (3,)


def test_blocking_inside_a_frame_is_reported_once(
    tensor: pf.Tensor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(current_frame(), "inside", True)
    monkeypatch.setattr(current_frame(), "_reported", False)
    with caplog.at_level(logging.WARNING, "perframe"):
        for _ in range(3):
            tensor.data_on_backend.write = ManualFence()  # type: ignore[attr-defined]
            tensor.readback_request().result(wait=True)
    assert len(caplog.records) == 1 and "result(wait=True)" in caplog.text


def test_many_threads_may_poll(tensor: pf.Tensor, fence: ManualFence) -> None:
    readback = tensor.readback_request()
    write(tensor, 6)
    threads = [threading.Thread(target=lambda: readback.done) for _ in range(8)]
    for thread in threads:
        thread.start()
    fence.done = True
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(readback.result(), [6, 6, 6])


def test_in_asyncio_others_run_though_everything_awaited_is_done() -> None:
    async def main() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(20):
            await pf.Tensor(np.ones(3, np.float32)).readback_request()
            await pf.Tensor(np.ones(3, np.float32)).readback_and_clone_async()
        task.cancel()
        return turns

    assert asyncio.run(main()) >= 20


def test_in_a_loop_that_waits_what_is_asked_for_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late:
        waited = False

        def poll(self) -> bool:
            return self.waited

        def wait(self) -> None:
            self.waited = True

        def values(self) -> np.ndarray[Any, Any]:
            return np.ones(2)

    assert not Readback(Late()).done
    monkeypatch.setattr(current_frame(), "waits", True)
    readback = Readback(Late())
    assert readback.done and readback.result().tolist() == [1, 1]


def test_frames_belong_to_their_threads(
    tensor: pf.Tensor, fence: ManualFence, caplog: pytest.LogCaptureFixture
) -> None:
    """A loop that waits, in one thread, leaves the readbacks and the frames of others as they are."""
    readback = tensor.readback_request()
    seen: list[object] = []

    def another() -> None:
        now = current_frame()
        seen.append((now.index, now.inside, now.waits, readback.done))
        own = FrameState()
        with own.entered():
            own.begin(7)
            current_frame().blocking("a call")
        seen.append((current_frame() is now, now.index, now.inside, own.inside))

    outside, film = current_frame(), FrameState(waits=True)
    with film.entered():
        film.begin(3)
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
        with FrameState().entered():  # a loop inside of a frame
            current_frame().begin(12)
        assert current_frame() is film and film.inside and film.index == 3
    assert current_frame() is outside and outside.index == 3 and not (outside.inside or outside.waits or film.inside)
    outside.index = 0
    assert seen == [(0, False, False, False), (True, 7, False, False)]
    assert fence.waits == 0 and caplog.text.count("blocked inside frame 7") == 1


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_only_a_long_wait_for_the_cpu_is_reported(
    tensor: pf.Tensor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr("perframe.tensor.tensor.BRIEF", patience)
    frame = FrameState()
    with frame.entered():
        frame.begin(7)
        assert not tensor.numpy().any()
    assert ("blocked inside frame 7" in caplog.text) == (patience == 0.0)
