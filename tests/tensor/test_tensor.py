"""Data types, shapes and tensors in host memory."""

from __future__ import annotations

import numpy as np
import pytest

import perframe as pf
from perframe.tensor import HostStorage


@pytest.mark.parametrize("dtype", list(pf.DataType))
def test_every_data_type_has_a_numpy_dtype_and_back(dtype: pf.DataType) -> None:
    assert pf.DataType.of(dtype.numpy) is dtype
    assert pf.DataType.of(dtype) is dtype


def test_data_types_by_name() -> None:
    assert pf.DataType.of("float32") is pf.DataType.FLOAT32
    assert pf.DataType.of(np.dtype("U7")) is pf.DataType.STRING
    with pytest.raises(pf.InputError, match="datetime64"):
        pf.DataType.of("datetime64[s]")


def test_is_float() -> None:
    assert {d for d in pf.DataType if d.is_float} >= {pf.DataType.FLOAT32, pf.DataType.BFLOAT16, pf.DataType.FLOAT8E5M2}
    assert not pf.DataType.INT8.is_float and not pf.DataType.COMPLEX64.is_float


@pytest.mark.parametrize("dims", [(), (5,), (2, 3, 5), (0, 3), (1, 1)])
def test_shape_agrees_with_numpy(dims: tuple[int, ...]) -> None:
    shape, array = pf.TensorShape(dims), np.zeros(dims, np.int8)
    assert (shape.rank, shape.size) == (array.ndim, array.size)
    assert shape == dims
    if array.size:
        assert shape.strides == array.strides


def test_a_tensor_copies_its_array() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = pf.Tensor(array)
    array[:] = 0
    np.testing.assert_array_equal(tensor.download_to_array(), np.arange(6).reshape(2, 3))
    assert (tensor.shape, tensor.dtype, tensor.backend_type) == ((2, 3), pf.DataType.FLOAT32, pf.BackendType.CPU)


def test_dtypes_of_plain_values() -> None:
    assert pf.Tensor([1.5, 2]).dtype is pf.DataType.FLOAT64
    assert pf.Tensor([1, 2], "float32").dtype is pf.DataType.FLOAT32
    assert pf.Tensor(["a", "bc"]).download_to_array().tolist() == ["a", "bc"]
    assert pf.Tensor(np.float32(3)).shape == ()
    assert pf.Tensor(np.zeros((0, 3), bool)).download_to_array().shape == (0, 3)


def test_host_memory_is_aligned_for_vectors() -> None:
    assert all(HostStorage((n,), pf.DataType.FLOAT32).address % 64 == 0 for n in range(1, 40))


def test_empty_gets_memory_when_it_is_needed() -> None:
    tensor = pf.Tensor.empty((2, 3), pf.DataType.INT32)
    assert not tensor.is_pinned
    tensor.upload(np.full((2, 3), 7, np.int32))
    assert tensor.is_pinned and (tensor.download_to_array() == 7).all()
    for shape in ((2, -1), 3, ("n", 3), (2.5,)):
        with pytest.raises(pf.InputError, match=r"a shape is a tuple of integers of at least 0, as \(1, 3, 4, 4\)"):
            pf.Tensor.empty(shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("array", [np.zeros((3, 2), np.float32), np.zeros((2, 3), np.float64), np.zeros(6, np.float32)])
def test_upload_wants_shape_and_dtype(array: np.ndarray) -> None:
    tensor = pf.Tensor(np.ones((2, 3), np.float32))
    with pytest.raises(pf.InputError, match=r"float32 \(2, 3\)"):
        tensor.upload(array)
    assert (tensor.download_to_array() == 1).all()


def test_reshape_shares_the_data() -> None:
    tensor = pf.Tensor(np.arange(6, dtype=np.float32))
    view = tensor.reshape((2, -1))
    assert view.shape == (2, 3) == tensor.reshape(2, -1).shape == tensor.reshape([2, 3]).shape
    with pytest.raises(TypeError):
        tensor.reshape((2.5, 3))  # type: ignore[arg-type]
    assert tensor.reshape(np.int64(6)).shape == (6,) and pf.Tensor(np.ones(1)).reshape(()).shape == ()
    tensor.upload(np.zeros(6, np.float32))
    assert not view.download_to_array().any()
    for wrong in ((4, -1), (5,), (-1, -1), (-2, -3)):
        with pytest.raises(pf.InputError, match="cannot be reshaped"):
            tensor.reshape(wrong)


def test_a_clone_is_the_callers() -> None:
    tensor = pf.Tensor(np.ones(3, np.float32))
    clone = tensor.readback_and_clone()
    tensor.upload(np.zeros(3, np.float32))
    assert clone.download_to_array().all()


def test_arrays_and_dlpack_of_host_tensors() -> None:
    tensor = pf.Tensor(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(np.asarray(tensor), [0, 1, 2])
    assert np.asarray(tensor, np.int64).dtype == np.int64
    np.testing.assert_array_equal(np.from_dlpack(tensor), [0, 1, 2])


def test_release_frees_and_says_so() -> None:
    with pf.Tensor(np.ones(3, np.float32)) as tensor:
        tensor.name = "scores"
    with pytest.raises(pf.ClosedError, match="scores"):
        tensor.download_to_array()


def test_a_storage_makes_others_of_its_kind() -> None:
    tensor = pf.Tensor(np.arange(6, dtype=np.float32))
    storage = tensor.data_on_backend
    assert storage.max_capacity == 6
    other = pf.Tensor(np.ones(2, np.int32))
    pinned = storage.pin(other)
    assert pinned is other.data_on_backend and pinned.backend_type is pf.BackendType.CPU
    np.testing.assert_array_equal(pinned.download((2,), pf.DataType.INT32), [1, 1])


def test_no_values_are_no_tensor() -> None:
    with pytest.raises(pf.InputError, match=r"got None: Tensor\.empty\(shape\)"):
        pf.Tensor(None)  # type: ignore[arg-type]
