"""Values that a readback request has brought: downloads return them, with no second transfer and no wait."""

from __future__ import annotations

import logging
import weakref
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.tensor.frames import FrameState

pytestmark = pytest.mark.backend


@pytest.fixture
def worker(backend: str, backend_context: Any) -> Any:
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (2, "n"))
    with pf.Worker(graph.compile(x * 2), backend, backend_context) as worker:
        yield worker


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The downloads that storages begin, of all kinds."""
    begun: list[str] = []

    def counted(kind: type, name: str) -> None:
        original = getattr(kind, name)

        def call(self: Any, *arguments: Any) -> Any:
            begun.append(f"{kind.__name__}.{name}")
            return original(self, *arguments)

        monkeypatch.setattr(kind, name, call)

    from perframe.backends.gl.compute import BufferStorage
    from perframe.backends.gl.pixel import TextureStorage
    from perframe.tensor import HostStorage

    counted(HostStorage, "download")
    for kind in (HostStorage, BufferStorage, TextureStorage):
        counted(kind, "request")
    return begun


def arrived(tensor: pf.Tensor) -> None:
    while not tensor.is_readback_request_done():
        pass


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_an_arrived_request_is_used(worker: pf.Worker, transfers: list[str], caplog: pytest.LogCaptureFixture) -> None:
    y = worker.schedule(X).peek_output()
    readback = y.readback_request()
    arrived(y)
    frame = FrameState()
    with caplog.at_level(logging.WARNING, "perframe"), frame.entered():
        frame.begin(1)
        first, clone, second = y.download_to_array(), y.readback_and_clone(), y.numpy()
    assert len(transfers) == 1 and not caplog.records
    first[:] = -1  # the caller's own
    values = readback.result()
    for array in (values, second, clone.numpy()):
        np.testing.assert_array_equal(array, X * 2)
    values[:] = -1
    np.testing.assert_array_equal(y.numpy(), X * 2)
    assert clone.backend_type is pf.BackendType.CPU


def test_values_of_a_later_run_are_transferred(worker: pf.Worker, transfers: list[str]) -> None:
    y = worker.schedule(X).peek_output()
    y.readback_request()
    arrived(y)
    worker.schedule(X + 1)
    np.testing.assert_array_equal(y.numpy(), X * 2 + 2)
    for _ in worker.schedule_iterable(X + 2):
        pass
    np.testing.assert_array_equal(y.numpy(), X * 2 + 4)
    y.readback_request()
    worker.schedule(X + 3)
    arrived(y)  # asked again, after the run: the requested values
    before = len(transfers)
    np.testing.assert_array_equal(y.numpy(), X * 2 + 4)
    assert len(transfers) == before


def test_without_a_poll_the_values_are_transferred(worker: pf.Worker, transfers: list[str]) -> None:
    y = worker.schedule(X).peek_output()
    readback = y.readback_request()
    y.numpy()
    y.readback_and_clone()
    assert len(transfers) >= 3
    mine = readback.result(wait=True)
    kept = weakref.ref(readback)
    del readback
    assert kept() is None, "the tensor keeps no result that the caller has"
    mine[:] = 9  # the tensor must not return what the caller has changed
    assert y.is_readback_request_done()
    np.testing.assert_array_equal(y.numpy(), X * 2)


def test_values_that_others_write(worker: pf.Worker, backend: str, backend_context: Any) -> None:
    """An upload, a conversion, a copy of an output, a bound output."""
    x = worker.empty_input(0, (2, 3))

    def request() -> None:
        x.readback_request()
        arrived(x)

    x.upload(X)
    request()
    x.upload(X + 1)
    assert not x.is_readback_request_done()
    np.testing.assert_array_equal(x.numpy(), X + 1)
    request()
    worker.schedule(X).copy_output(0, x)
    np.testing.assert_array_equal(x.numpy(), X * 2)
    request()
    worker.bind_output(0, x)
    worker.schedule(X + 1)
    np.testing.assert_array_equal(x.numpy(), X * 2 + 2)
    worker.bind_output(0, None)
    if backend != "cpu":
        worker.schedule(X)
        picture = worker.empty_input(0, (2, 3)).reshape((1, 1, 2, 3))
        picture.upload(X.reshape(1, 1, 2, 3))
        picture.readback_request()
        arrived(picture)
        texture = backend_context.texture((3, 2), 1, np.full((2, 3), 255, np.uint8).tobytes())
        with pf.TextureConverter(backend_context) as converter:
            converter.to_tensor(texture, picture)
            np.testing.assert_array_equal(picture.numpy(), np.ones((1, 1, 2, 3)))
        texture.release()


def test_a_failed_run_raises_its_error_again() -> None:
    class Failed:
        done = True

        def wait(self) -> None:
            raise pf.BackendError("the layer failed")

    tensor = pf.Tensor(X)
    tensor.data_on_backend.write = Failed()
    tensor.readback_request()
    assert tensor.is_readback_request_done()
    for _ in range(2):
        with pytest.raises(pf.BackendError, match="layer failed"):
            tensor.numpy()
