"""Errors of tensors in CUDA: what is missing, what GL must not use meanwhile, and what ends too early."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.cuda_stand_in import Runtime, Status, host_view, on_gpu
from gl.graphs import network

VALUES = np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4)


@pytest.fixture
def tensor(where: str, gl_context: Any) -> pf.Tensor:
    return on_gpu(VALUES, where, gl_context)


def test_a_tensor_that_is_not_on_a_gpu(cuda: Runtime) -> None:
    for tensor in (pf.Tensor(VALUES), pf.Tensor.empty((3,))):
        for use in (tensor.on_cuda, lambda tensor=tensor: tensor.copy_from_cuda(VALUES)):
            with pytest.raises(pf.InputError, match=r"is not on a GPU: move it there by tensor\.pin"):
                use()
    released = pf.Tensor(VALUES)
    released.release()
    with pytest.raises(pf.InputError, match="is not on a GPU"):
        released.on_cuda()
    assert cuda.calls == []


def test_a_released_tensor(tensor: pf.Tensor, cuda: Runtime) -> None:
    tensor.data_on_backend.release()
    with pytest.raises(pf.ClosedError):
        tensor.on_cuda()


def test_without_the_package(tensor: pf.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(pf.MissingExtraError, match=r"cuda-python: pip install 'perframe\[cuda\]'"), tensor.on_cuda():
        pass
    np.testing.assert_array_equal(tensor.numpy(), VALUES)


def test_without_the_driver(tensor: pf.Tensor, cuda: Runtime) -> None:
    cuda.fails["cudaGLGetDevices"] = RuntimeError("Failed to dlopen libcuda.so.1")
    with pytest.raises(pf.BackendError, match=r"only NVIDIA GPUs share.*dlopen libcuda.*driver"), tensor.on_cuda():
        pass


def test_a_gpu_of_another_maker(tensor: pf.Tensor, cuda: Runtime) -> None:
    cuda.fails["cudaGLGetDevices"] = Status.cudaErrorOperatingSystem
    with pytest.raises(pf.BackendError, match=r"CUDA does not know the GL context, which runs on \S+.*OperatingSystem"):
        tensor.on_cuda().__enter__()
    assert "cudaGraphicsGLRegisterBuffer" not in cuda.names()


def test_another_device(tensor: pf.Tensor, cuda: Runtime) -> None:
    cuda.device, cuda.devices_of_context = 1, [0]
    with pytest.raises(pf.BackendError, match=r"current CUDA device is 1, and the GL context runs on device 0"):
        tensor.on_cuda().__enter__()
    cuda.device = 0
    with tensor.on_cuda():
        pass
    cuda.device, cuda.devices_of_context = 1, [0, 1]
    with pytest.raises(pf.BackendError, match=r"was shared with the CUDA device 0, and 1 is current now"):
        tensor.on_cuda().__enter__()
    cuda.device, cuda.devices_of_context = 0, [1]
    with pytest.raises(pf.BackendError, match=r"current CUDA device is 0, and the GL context runs on device 1"):
        tensor.on_cuda().__enter__()
    np.testing.assert_array_equal(tensor.numpy(), VALUES)


@pytest.mark.parametrize("name", ["Map", "GetMappedPointer", "GetMappedArray", "cudaMalloc", "Register"])
def test_a_call_that_fails_leaves_the_tensor_usable(where: str, name: str, tensor: pf.Tensor, cuda: Runtime) -> None:
    calls = {
        "Map": "cudaGraphicsMapResources",
        "GetMappedPointer": "cudaGraphicsResourceGetMappedPointer",
        "GetMappedArray": "cudaGraphicsSubResourceGetMappedArray",
        "cudaMalloc": "cudaMalloc",
        "Register": "cudaGraphicsGLRegisterBuffer" if where == "gpu_compute" else "cudaGraphicsGLRegisterImage",
    }
    cuda.fails[calls[name]] = Status.cudaErrorInvalidResourceHandle
    if (where == "gpu_compute") == (name in ("GetMappedArray", "cudaMalloc")) and name not in ("Map", "Register"):
        with tensor.on_cuda():  # that backend does not call it
            pass
    else:
        with pytest.raises(pf.BackendError, match=f"{calls[name]} failed: cudaErrorInvalidResourceHandle"):
            tensor.on_cuda().__enter__()
    cuda.fails.clear()
    assert len(cuda.allocated) == 2 * sum(resource.is_texture for resource in cuda.resources)
    np.testing.assert_array_equal(tensor.numpy(), VALUES)
    with tensor.on_cuda() as array:
        np.testing.assert_array_equal(host_view(array), VALUES)
    assert len(cuda.resources) == 1


def test_what_gl_may_not_touch(where: str, tensor: pf.Tensor, cuda: Runtime, gl_context: Any) -> None:
    texture = gl_context.texture((4, 4), 4, bytes(64))
    converter = pf.TextureConverter(gl_context)
    converter.to_tensor(texture, tensor)
    with pf.Worker(network(), backend=where, ctx=gl_context) as worker:
        worker.schedule(tensor).peek_output().numpy()  # all is bound and recorded
        tensor.upload(VALUES)
        uses: list[Callable[[], Any]] = [
            tensor.numpy,
            tensor.readback_request,
            lambda: tensor.upload(VALUES),
            lambda: tensor.upload(VALUES[:, :1], at=(0, 0, 0, 0)),
            lambda: worker.schedule(tensor),
            lambda: converter.to_tensor(texture, tensor),
            lambda: converter.to_texture(tensor, texture),
        ]
        with tensor.on_cuda():
            for use in uses:
                with pytest.raises(pf.BackendError, match=r"end the block of `with tensor\.on_cuda\(\)` first"):
                    use()
        np.testing.assert_array_equal(tensor.numpy(), VALUES)
        wanted = np.maximum(VALUES * 2 - 0.5, 0)
        np.testing.assert_allclose(worker.schedule(tensor).peek_output().numpy(), wanted)


def test_a_run_that_writes_a_mapped_output(where: str, tensor: pf.Tensor, cuda: Runtime, gl_context: Any) -> None:
    with pf.Worker(network(), backend=where, ctx=gl_context) as worker:
        for _ in range(2):
            output = worker.schedule(tensor).peek_output()
            with (
                output.on_cuda(access="read") as array,
                pytest.raises(pf.BackendError, match=r"a run needs a tensor that CUDA has mapped"),
            ):
                worker.schedule(tensor)
            assert array is not None
        worker.schedule(tensor)
        np.testing.assert_allclose(worker.peek_output().numpy(), np.maximum(VALUES * 2 - 0.5, 0))


def test_mapped_twice(tensor: pf.Tensor, cuda: Runtime) -> None:
    block = tensor.on_cuda()
    with block as array:
        with pytest.raises(pf.BackendError, match="is mapped by CUDA already"):
            tensor.reshape((-1,)).on_cuda().__enter__()  # it shares the storage
        with pytest.raises(pf.BackendError, match="this block has begun before"):
            block.__enter__()
        np.testing.assert_array_equal(host_view(array), VALUES)
    with tensor.on_cuda():
        pass


def test_from_another_thread(tensor: pf.Tensor, cuda: Runtime) -> None:
    found: list[Exception] = []

    def use() -> None:
        try:
            tensor.on_cuda().__enter__()
        except pf.BackendError as error:
            found.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(20)
    assert "from another thread" in str(found[0]) and cuda.calls == []


def test_a_release_within_the_block(where: str, tensor: pf.Tensor, cuda: Runtime, gl_context: Any) -> None:
    with (
        pytest.raises(pf.ClosedError, match=r"\(1, 3, 4, 4\) was released, .*while CUDA had it mapped"),
        tensor.on_cuda() as array,
    ):
        tensor.release()
        on_gpu(VALUES, where, gl_context).release()  # dropped objects are freed here, but not these
        assert len(cuda.resources) == 1
        np.testing.assert_array_equal(host_view(array), VALUES)
    on_gpu(VALUES, where, gl_context).release()
    assert cuda.resources == [] and not cuda.allocated


def test_a_worker_that_is_released_within_the_block(where: str, cuda: Runtime, gl_context: Any) -> None:
    worker = pf.Worker(network(), backend=where, ctx=gl_context)
    output = worker.schedule(VALUES).peek_output()
    with pytest.raises(pf.ClosedError, match="or its worker was"), output.on_cuda() as array:
        worker.release()
        np.testing.assert_allclose(host_view(array), np.maximum(VALUES * 2 - 0.5, 0))
    on_gpu(VALUES, where, gl_context).release()
    assert cuda.resources == []


def test_an_error_in_the_block_is_raised(tensor: pf.Tensor, cuda: Runtime) -> None:
    with pytest.raises(ZeroDivisionError), tensor.on_cuda():
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), tensor.on_cuda():
        tensor.release()
        raise ZeroDivisionError


@pytest.mark.parametrize("stream", [-1, True, 1.5, "0", None])
def test_a_stream_that_is_none(tensor: pf.Tensor, stream: Any, cuda: Runtime) -> None:
    with pytest.raises(pf.InputError, match="stream is a CUDA stream or its handle"):
        tensor.on_cuda(stream)


def test_an_access_that_is_none(tensor: pf.Tensor, cuda: Runtime) -> None:
    with pytest.raises(pf.InputError, match="access is one of read_write, read, write, not 'rw'"):
        tensor.on_cuda(access="rw")
