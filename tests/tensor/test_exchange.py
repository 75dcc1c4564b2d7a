"""Tensors in host memory and other libraries' arrays: DLPack and `__array__`, with and without copies."""

from __future__ import annotations

import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def memory_of(tensor: pf.Tensor) -> int:
    storage: Any = tensor.data_on_backend
    return int(storage.address)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_, np.uint8, np.complex64])
def test_an_array_over_a_tensor_is_no_copy(dtype: Any) -> None:
    tensor = pf.Tensor(np.array([[1, 0, 1], [0, 1, 0]], dtype))
    for array in (np.from_dlpack(tensor), np.from_dlpack(tensor, copy=False)):
        assert address(array) == memory_of(tensor)
        assert array.dtype == dtype and array.shape == (2, 3) and not array.flags.writeable
    tensor.upload(np.zeros((2, 3), dtype))
    assert not array.any()


def test_a_copy_is_the_callers() -> None:
    tensor = pf.Tensor(np.arange(3, dtype=np.float32))
    copies = [np.from_dlpack(tensor, copy=True), np.asarray(tensor), np.array(tensor)]
    tensor.upload(np.zeros(3, np.float32))
    for array in copies:
        np.testing.assert_array_equal(array, [0, 1, 2])
        assert array.flags.writeable


def test_asarray_without_a_copy() -> None:
    tensor = pf.Tensor(np.arange(3, dtype=np.float32))
    view = np.asarray(tensor, copy=False)
    assert address(view) == memory_of(tensor) and not view.flags.writeable
    with pytest.raises(ValueError, match="float64 without a copy"):
        np.asarray(tensor, np.float64, copy=False)


def test_a_consumer_that_knows_no_read_only_memory_gets_a_copy() -> None:
    tensor = pf.Tensor(np.arange(3, dtype=np.float32))

    class Older:
        """A consumer of the time before versions."""

        def __dlpack__(self, **_: Any) -> Any:
            return tensor.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return tensor.__dlpack_device__()

    array = np.from_dlpack(Older())
    assert address(array) != memory_of(tensor)
    np.testing.assert_array_equal(array, [0, 1, 2])
    with pytest.raises(pf.InputError, match=r"read-only, which needs DLPack 1\.0"):
        tensor.__dlpack__(copy=False)


def test_what_cannot_be_exported() -> None:
    tensor = pf.Tensor(np.arange(3, dtype=np.float32))
    with pytest.raises(pf.InputError, match=r"no streams: stream is None, not 7"):
        tensor.__dlpack__(stream=7)
    with pytest.raises(pf.InputError, match=r"cannot be exported to the device \(2, 0\)"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(pf.InputError, match="cannot be exported by DLPack"):
        np.from_dlpack(pf.Tensor(["a", "b"]))
    tensor.release()
    with pytest.raises(pf.ClosedError):
        np.from_dlpack(tensor)


def test_an_exported_memory_outlives_its_tensor() -> None:
    tensor = pf.Tensor(np.arange(3, dtype=np.float32))
    array = np.from_dlpack(tensor)
    tensor.release()
    del tensor
    collect_garbage()
    np.testing.assert_array_equal(array, [0, 1, 2])


def test_a_tensor_over_an_array_is_no_copy() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = pf.Tensor.from_dlpack(array, copy=False)
    assert memory_of(tensor) == address(array) and tensor.dtype is pf.DataType.FLOAT32
    array[0, 0] = 9
    assert tensor[0, 0] == 9
    tensor.upload(np.zeros((2, 3), np.float32))
    assert not array.any()


def test_requested_values_do_not_stand_in_for_newer_ones() -> None:
    array = np.zeros(3, np.float32)
    tensor = pf.Tensor.from_dlpack(array)
    tensor.readback_request()
    while not tensor.is_readback_request_done():
        pass
    array += 1
    np.testing.assert_array_equal(tensor.numpy(), [1, 1, 1])


def test_a_shared_array_lives_as_long_as_its_tensor() -> None:
    array = np.arange(6, dtype=np.float32)
    owner = weakref.ref(array)
    tensor = pf.Tensor.from_dlpack(array)
    del array
    collect_garbage()
    assert owner() is not None
    np.testing.assert_array_equal(tensor.numpy(), np.arange(6))
    tensor.release()
    collect_garbage()
    assert owner() is None


def test_a_worker_reads_and_writes_shared_memory(backend: Any) -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (5,), "x")
    given, result = np.arange(6, dtype=np.float32)[1:], np.zeros(5, np.float32)  # not at a multiple of 8 bytes
    with pf.Worker(graph.compile(y=x * 2 + 1), backend=backend) as worker:
        shared = pf.Tensor.from_dlpack(given, copy=False)
        first = worker.schedule(shared).peek_output().numpy()
        np.testing.assert_array_equal(first, given * 2 + 1)
        if backend == "cpu":  # a GPU has moved the values to its own memory
            worker.bind_output("y", pf.Tensor.from_dlpack(result, copy=False))
            given += 10
            worker.schedule(shared).peek_output().numpy()
            np.testing.assert_array_equal(result, given * 2 + 1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda array: array.T, "row-major order"),
        (lambda array: array[:, ::2], "row-major order"),
        (lambda array: np.lib.stride_tricks.as_strided(array, writeable=False), "read-only"),
        (lambda array: np.zeros(9, np.uint8)[1:].view(np.float32), "multiple of the size of an element"),
    ],
)
def test_what_cannot_be_shared_is_copied_or_refused(make: Any, reason: str) -> None:
    array = make(np.arange(12, dtype=np.float32).reshape(3, 4))

    tensor = pf.Tensor.from_dlpack(array)
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert memory_of(tensor) != address(array)
    with pytest.raises(pf.InputError, match=rf"cannot be shared, because .*{reason}: leave out copy=False"):
        pf.Tensor.from_dlpack(array, copy=False)


def test_a_copy_on_request() -> None:
    array = np.arange(3, dtype=np.float32)
    tensor = pf.Tensor.from_dlpack(array, copy=True)
    array[:] = 0
    np.testing.assert_array_equal(tensor.numpy(), [0, 1, 2])


def test_what_is_not_an_array_of_the_host() -> None:
    class OnCuda:
        def __dlpack__(self, **_: Any) -> Any:
            raise AssertionError("nothing asks for it")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __array__(self, *_: Any, **__: Any) -> Any:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")

    with pytest.raises(pf.InputError, match=r"is on a CUDA device: tensor\.copy_from_cuda"):
        pf.Tensor.from_dlpack(OnCuda())
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (2,), "x")
    with pf.Worker(graph.compile(y=x + 1)) as worker:
        for use in (pf.Tensor, pf.Tensor(np.zeros(2, np.float32)).upload, worker.schedule):
            with pytest.raises(pf.InputError, match=r"Use Tensor\.cpu\(\); tensor\.copy_from_cuda\(array\) copies"):
                use(OnCuda())
    with pytest.raises(pf.InputError, match="list has no __dlpack__"):
        pf.Tensor.from_dlpack([1, 2])


def test_bfloat16_is_shared() -> None:
    values = np.array([[1, 2.5], [3, 4]], ml_dtypes.bfloat16)
    tensor = pf.Tensor(values)
    again = pf.Tensor.from_dlpack(tensor)  # a tensor exports, and a tensor imports: the memory is read-only
    np.testing.assert_array_equal(again.numpy(), values)
    with pytest.raises(pf.InputError, match="read-only"):
        pf.Tensor.from_dlpack(tensor, copy=False)


def test_unused_capsules_are_freed() -> None:
    tensor = pf.Tensor(np.zeros(1 << 16, ml_dtypes.bfloat16))
    storage: Any = tensor.data_on_backend
    memory = weakref.ref(storage.memory)
    for version in (None, (1, 0)):
        capsule = tensor.__dlpack__(max_version=version)
        del capsule
    tensor.release()
    del storage
    collect_garbage()
    assert memory() is None
