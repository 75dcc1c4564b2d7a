"""Any use of a released object is an error that says so, and changes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.graphs import graph, network

SHAPE = (1, 3, 4, 5)
ONES = np.ones(SHAPE, np.float32)


def output_of_a_released_worker(where: str, ctx: Any) -> pf.Tensor:
    with pf.Worker(network(), where, ctx) as worker:
        output: pf.Tensor = worker.schedule(ONES).peek_output()
        return output


def released_tensor(where: str, ctx: Any) -> pf.Tensor:
    with pf.Worker(network(), where, ctx) as worker:
        x = worker.empty_input("x", SHAPE)
    x.upload(ONES)
    x.release()
    return x


def released_storage(where: str, ctx: Any) -> pf.Tensor:
    with pf.Worker(network(), where, ctx) as worker:
        x = worker.empty_input("x", SHAPE)
    x.upload(ONES)
    x.data_on_backend.release()
    return x


@pytest.fixture(params=[output_of_a_released_worker, released_tensor, released_storage])
def closed(request: pytest.FixtureRequest, where: str, gl_context: Any) -> pf.Tensor:
    """A tensor on the GPU that was released in one way or another."""
    tensor: pf.Tensor = request.param(where, gl_context)
    return tensor


def test_a_tensor_says_so(closed: pf.Tensor, where: str, gl_context: Any) -> None:
    texture, canvas = gl_context.texture((5, 4), 4, bytes(80)), gl_context.simple_framebuffer((5, 4))
    converter = pf.TextureConverter(gl_context, where)
    canvas.use()
    canvas.clear()
    _ = gl_context.error  # an earlier test's
    uses: list[Callable[[], Any]] = [
        closed.download_to_array,
        closed.readback_request,
        closed.readback_and_clone,
        lambda: closed.upload(ONES),
        lambda: closed.reshape((60,)).download_to_array(),
        lambda: converter.to_tensor(texture, closed),
        lambda: converter.to_texture(closed, texture),
        lambda: converter.render_to_screen(closed),
        lambda: converter.render_to_screen(closed, viewport=(0, 0, 0, 0)),
        lambda: pf.Tensor(ONES).data_on_backend.pin(closed),
    ]
    for use in uses:
        with pytest.raises(pf.ClosedError, match="was"):
            use()
    assert not any(canvas.read()) and not any(texture.read())
    assert gl_context.error == "GL_NO_ERROR"


def test_storage_says_so_though_nothing_is_asked_of_it(where: str, gl_context: Any) -> None:
    storage: Any = released_storage(where, gl_context)._storage
    nothing = np.empty(0, np.float32)
    uses: list[Callable[[], Any]] = [
        storage.download,
        lambda: storage.download((0,)),
        lambda: storage.upload(nothing),
        lambda: storage.request((0,), pf.DataType.FLOAT32),
    ]
    for use in uses:
        with pytest.raises(pf.ClosedError, match=r"60 elements \(float32 on gpu_\w+\) was used after it was released"):
            use()
    assert storage.max_capacity == 0


@pytest.mark.parametrize("backend_name", ["cpu", "gpu_compute", "gpu_pixel"])
def test_an_input_of_a_worker_of_any_backend(closed: pf.Tensor, gl_context: Any, backend_name: str) -> None:
    if backend_name == "gpu_compute" and gl_context.version_code < 430:
        pytest.skip("gpu_compute needs GL 4.3")
    add = graph([("Add", ["a", "b"], ["y"])], {"a": SHAPE, "b": SHAPE})
    with pf.Worker(add, backend_name, None if backend_name == "cpu" else gl_context) as worker:
        before = worker.schedule(ONES, ONES).peek_output().download_to_array()
        for inputs in ((closed, ONES), (ONES, closed), (closed, closed)):
            with pytest.raises(pf.ClosedError):
                worker.schedule(*inputs)
        np.testing.assert_array_equal(worker.peek_output().download_to_array(), before)
        assert worker.schedule(ONES, 2 * ONES).peek_output().download_to_array().max() == 3
    assert gl_context.error == "GL_NO_ERROR"


def test_an_output_that_becomes_an_input_in_the_same_context(where: str, gl_context: Any) -> None:
    """It is read where it lies, and not after its worker is gone."""
    first, second = (pf.Worker(network(), where, gl_context, strict=True) for _ in range(2))
    y = first.schedule(ONES).peek_output()
    assert second.schedule(y).peek_output().download_to_array().max() == 2.5
    first.release()
    with pytest.raises(pf.ClosedError):
        second.schedule(y)
    assert second.schedule(ONES).peek_output().download_to_array().max() == 1.5
    second.release()
