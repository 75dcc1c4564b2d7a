"""Tensors that move: `to`, `pin` of tensors and of storages, uploads of blocks, items, and views of host memory."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.backends.gl.storage.storage import runs_of

pytestmark = pytest.mark.backend
DTYPES = ["float32", "float16", "int32", "int64", "uint8", "int8", "bool", "bfloat16"]


def values(shape: tuple[int, ...], dtype: str, first: int = 0) -> np.ndarray:
    made = (np.arange(np.prod(shape, dtype=int)) + first) % 100
    return made.reshape(shape).astype(pf.DataType(dtype).numpy)


@st.composite
def blocks(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """A shape, the shape of a block, and where the block begins."""
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=4)))
    part = tuple(draw(st.integers(0, dim)) for dim in shape)
    return shape, part, tuple(draw(st.integers(0, dim - n)) for dim, n in zip(shape, part, strict=True))


@given(blocks())
def test_runs_cover_a_block(block: Any) -> None:
    shape, part, at = block
    expected = np.zeros(shape, bool)
    expected[tuple(slice(a, a + n) for a, n in zip(at, part, strict=True))] = True
    begins, run = runs_of(part, at, shape)
    found = [begin + each for begin, each in itertools.product(begins, range(run))]
    assert found == np.flatnonzero(expected).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_goes_to_a_backend_and_back(backend: str, backend_context: Any, dtype: str) -> None:
    array = values((3, 5, 7), dtype)
    tensor = pf.Tensor(array)
    moved = tensor.to(backend, backend_context)
    assert moved.backend_type == backend and moved.dtype == dtype and tensor.backend_type == "cpu"
    assert (moved is tensor) == (backend == "cpu")
    assert moved.to(backend, backend_context) is moved
    back = moved.to("cpu")
    assert back.backend_type == "cpu"
    np.testing.assert_array_equal(back.numpy(), array)
    np.testing.assert_array_equal(moved.numpy(), array)


def test_pin_moves_a_tensor_itself(backend: str, backend_context: Any) -> None:
    tensor = pf.Tensor(values((2, 9), "float32"))
    storage = tensor.pin(backend, backend_context)
    assert storage is tensor.data_on_backend and tensor.backend_type == backend
    assert tensor.pin(backend, backend_context) is storage
    other = pf.Tensor(values((4, 3), "int32"))
    pinned = storage.pin(other)
    assert pinned is other.data_on_backend and other.backend_type == backend
    assert storage.pin(other) is pinned
    np.testing.assert_array_equal(other.numpy(), values((4, 3), "int32"))
    host = tensor.pin("cpu")
    assert host.backend_type == "cpu" and tensor.pin("cpu") is host
    np.testing.assert_array_equal(tensor.numpy(), values((2, 9), "float32"))
    empty = pf.Tensor.empty((3,))
    assert empty.pin(backend, backend_context) is empty.data_on_backend and empty.backend_type == backend


def test_wrong_places(backend: str, backend_context: Any) -> None:
    tensor = pf.Tensor(values((3,), "float32"))
    with pytest.raises(pf.InputError, match="no backend 'gpu'"):
        tensor.to("gpu")
    tensor.release()
    for call in (tensor.to, tensor.pin):
        with pytest.raises(pf.ClosedError):
            call(backend, backend_context)


def test_between_gpu_backends_and_contexts(gl_context: Any) -> None:
    if gl_context.version_code < 430:
        pytest.skip("compute shaders need GL 4.3")
    array = values((5, 6), "float32")
    one = pf.Tensor(array).to("gpu_compute", gl_context)
    other = one.to("gpu_pixel", gl_context)
    assert other.backend_type == "gpu_pixel"
    np.testing.assert_array_equal(other.numpy(), array)
    own = pf.Tensor(array).to("gpu_compute")  # in this thread's headless context
    with gl_context:
        moved = own.to("gpu_compute", gl_context)
        assert moved is not own
        np.testing.assert_array_equal(moved.numpy(), array)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_upload_of_a_block(gl_session: Any, dtype: str, data: Any) -> None:
    shape, part, at = data.draw(blocks())
    gl_session.__enter__()
    for backend in ("cpu", "gpu_pixel", *(("gpu_compute",) if gl_session.version_code >= 430 else ())):
        tensor = pf.Tensor(values(shape, dtype)).to(backend, None if backend == "cpu" else gl_session)
        expected, block = values(shape, dtype), values(part, dtype, 50)
        expected[tuple(slice(a, a + n) for a, n in zip(at, part, strict=True))] = block
        tensor.upload(block, at=at)
        np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize(("first", "count"), [(0, 4096), (1, 5000), (2047, 2050), (30, 1), (4, 8000)])
def test_upload_of_long_runs(backend: str, backend_context: Any, first: int, count: int) -> None:
    """Runs over many rows of a texture, whose rows have 64 places of eight texels."""
    expected = values((9001,), "float32")
    tensor = pf.Tensor(expected).to(backend, backend_context)
    block = -values((count,), "float32", 7) - 1
    expected[first : first + count] = block
    tensor.upload(block, at=(first,))
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_a_block_leaves_the_state_of_gl(gl_context: Any) -> None:
    tensor = pf.Tensor(values((3, 5), "float32")).to("gpu_pixel", gl_context)
    gl_context.scissor = (1, 2, 3, 4)
    target = gl_context.simple_framebuffer((8, 8))
    target.use()
    target.scissor = (1, 2, 3, 4)
    target.color_mask = (True, False, True, True)
    tensor.upload(np.full((1, 2), -1, np.float32), at=(1, 2))
    target.clear(1, 1, 1, 1)
    pixels = np.frombuffer(target.read(components=4), np.uint8).reshape(8, 8, 4)
    inside = np.zeros((8, 8), bool)
    inside[2:6, 1:4] = True
    np.testing.assert_array_equal(pixels[..., 0] == 255, inside)
    assert not pixels[..., 1].any()
    expected = values((3, 5), "float32")
    expected[1, 2:4] = -1
    np.testing.assert_array_equal(tensor.numpy(), expected)
    gl_context.scissor = None


def test_blocks_that_do_not_fit(backend: str, backend_context: Any) -> None:
    tensor = pf.Tensor(values((3, 5), "float32")).to(backend, backend_context)
    for block, at in [((1, 2), (2, 4)), ((1, 2), (-1, 0)), ((2,), (0, 0)), ((1, 1), (0,)), ((1, 1), (0.5, 0))]:
        with pytest.raises(pf.InputError, match="cannot take"):
            tensor.upload(np.zeros(block, np.float32), at=at)
    with pytest.raises(pf.InputError, match="cannot take int32"):
        tensor.upload(np.zeros((1, 1), np.int32), at=(0, 0))
    np.testing.assert_array_equal(tensor.numpy(), values((3, 5), "float32"))
    tensor.release()
    with pytest.raises(pf.ClosedError):
        tensor.upload(np.zeros((1, 1), np.float32), at=(0, 0))


def test_items_of_a_tensor_on_the_cpu() -> None:
    tensor = pf.Tensor(values((3, 5), "float32"))
    row = tensor[1]
    row[:] = -1  # a copy
    assert tensor[1, 2] == 7 and isinstance(tensor[1, 2], np.float32)
    tensor[1, 2] = 40
    tensor[0] = [9, 8, 7, 6, 5.5]
    tensor[tensor.numpy() > 12] = 0
    expected = values((3, 5), "float32")
    expected[1, 2], expected[0] = 40, [9, 8, 7, 6, 5.5]
    expected[expected > 12] = 0
    np.testing.assert_array_equal(tensor.numpy(), expected)
    words = pf.Tensor(["one", "two"])
    words[1] = "three"
    assert words[1] == "three" and words.numpy().tolist() == ["one", "three"]
    with pytest.raises(IndexError):
        tensor[4]


@pytest.mark.parametrize("wrong", [1.5, 300, -1, float("nan"), [1, 2, 3], "word", 1j, None])
def test_items_that_a_tensor_cannot_hold(wrong: Any) -> None:
    tensor = pf.Tensor(values((3, 5), "uint8"))
    with pytest.raises(pf.InputError):
        tensor[1] = wrong
    np.testing.assert_array_equal(tensor.numpy(), values((3, 5), "uint8"))


def test_items_on_a_gpu_are_refused(gl_context: Any) -> None:
    tensor = pf.Tensor(values((3, 5), "float32")).to("gpu_pixel", gl_context)
    with pytest.raises(pf.InputError, match="indexing would block"):
        tensor[1]
    with pytest.raises(pf.InputError, match="upload"):
        tensor[1] = 0


def test_items_wait_for_the_jobs_that_use_the_tensor() -> None:
    tensor, gate = pf.Tensor(values((4,), "float32")), threading.Event()

    def write(array: np.ndarray) -> None:
        gate.wait(10)
        array += 1

    pf.jobs.schedule(write, tensor, writes=[tensor])
    threading.Timer(0.05, gate.set).start()
    assert tensor[2] == 3
    gate.clear()
    seen: list[float] = []

    def read(array: np.ndarray) -> None:
        gate.wait(10)
        seen.append(float(array[0]))

    pf.jobs.schedule(read, tensor, depends_on=[tensor])
    threading.Timer(0.05, gate.set).start()
    tensor[0] = -5
    assert seen == [1] and tensor[0] == -5


def test_a_view_of_host_memory(backend: str, backend_context: Any) -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (2, 3))
    with pf.Worker(graph.compile(x * 2), backend, backend_context) as worker:
        y = worker.schedule(values((2, 3), "float32")).peek_output()
        view = y.download_to_native_array()
        np.testing.assert_array_equal(view, 2 * values((2, 3), "float32"))
        with pytest.raises(ValueError, match="read-only"):
            view[0, 0] = 1
        if backend == "cpu":
            assert np.shares_memory(view, y.download_to_native_array())
            worker.schedule(np.ones((2, 3), np.float32))
            y.download_to_array()
            np.testing.assert_array_equal(view, np.full((2, 3), 2))
        else:
            with pytest.raises(pf.InputError, match="writable"):
                y.download_to_native_array(writable=True)


def test_a_writable_view_is_the_tensor() -> None:
    tensor = pf.Tensor(values((2, 3), "float32"))
    tensor.readback_request()
    assert tensor.is_readback_request_done()
    view = tensor.download_to_native_array(writable=True)
    assert tensor.is_readback_request_done()
    view[1] = 7
    np.testing.assert_array_equal(tensor.numpy(), [[0, 1, 2], [7, 7, 7]])
    assert not tensor.download_to_native_array().flags.writeable
    tensor.release()
    view[0] = 3  # the memory lives as long as the view
    assert view.sum() == 30
