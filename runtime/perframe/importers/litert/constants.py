"""Constants of LiteRT files: the bytes of a buffer become an array of a tensor's shape and dtype."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.importers.litert.file import TensorInfo, dense
from perframe.tensor import DataType
from perframe.tensor.checks import most_bytes, too_large

Array = NDArray[Any]

_KINDS = {"STRING": "object", "INT4": "int8", "INT2": "int8"}  # small numbers are stored as bytes in layers
_BITS = {"INT4": 4, "INT2": 2}


def data_type(tensor: TensorInfo, file: str) -> DataType:
    """Return the dtype of a tensor. Raises ModelError if no layer has such values."""
    try:
        return DataType(_KINDS.get(tensor.kind, tensor.kind.lower()))
    except ValueError:
        raise ModelError(
            f"{file}: tensor {tensor.name!r} is of type {tensor.kind}, which perframe does not have"
        ) from None


def constant_of(tensor: TensorInfo, dtype: DataType, file: str) -> Array | None:
    """Return the value of a constant, or None for any other tensor. Raises ModelError if shape and bytes disagree."""
    where = f"{file}: constant {tensor.name!r}"
    if tensor.is_variable:
        return None
    shape = [dim for dim in tensor.shape if dim is not None]
    if tensor.data is None:
        return np.empty(shape, dtype.numpy) if len(shape) == len(tensor.shape) and 0 in shape else None
    if len(shape) != len(tensor.shape):
        raise ModelError(f"{where} has an unknown dim: {list(tensor.shape)}")
    reason = too_large(shape, dtype)
    if reason:
        raise ModelError(f"{where} is too large: {reason}")
    try:
        values = _decoded(tensor, dtype)
        if tensor.sparsity is not None:
            return dense(values, tensor.sparsity, tuple(shape), most_bytes() // (8 * (len(shape) + 2)))
    except (IndexError, OverflowError, ValueError) as error:
        raise ModelError(f"{where} of shape {shape} cannot be read: {error}") from None
    count = math.prod(shape)
    spare = values.size - count if tensor.kind in _BITS else 0
    if values.size != count and not 0 < spare < 8 // _BITS[tensor.kind]:
        raise ModelError(
            f"{where} of type {tensor.kind.lower()} and shape {shape} has {count} values, and {tensor.data.size} bytes"
        )
    return values[:count].reshape(shape)


def _decoded(tensor: TensorInfo, dtype: DataType) -> Array:
    """Return the values of a buffer, which may be a view of it. Raises ValueError."""
    data = tensor.data
    assert data is not None
    if tensor.kind == "STRING":
        return _texts(data)
    if tensor.kind in _BITS:
        bits = _BITS[tensor.kind]
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        small = (data[:, None] >> shifts).reshape(-1) << (8 - bits)
        values: Array = small.astype(np.uint8).view(np.int8) >> (8 - bits)
        return values
    if data.size % dtype.numpy.itemsize:
        raise ValueError(f"{data.size} bytes are not a multiple of the size of {dtype}")
    return data.view(dtype.numpy)


def _texts(data: NDArray[np.uint8]) -> Array:
    """Return texts: their count, the place of each and of the end, and the bytes."""
    count = int(data[:4].view("<i4")[0])
    if not 0 <= count <= data.size // 4 - 2:
        raise ValueError(f"{count} texts in {data.size} bytes")
    ends = data[4 : 4 * count + 8].copy().view("<i4")
    if (np.diff(ends) < 0).any() or ends[0] < 0 or ends[-1] > data.size:
        raise ValueError("texts outside of their bytes")
    whole = data.tobytes()
    made = np.empty(count, object)
    made[:] = [whole[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(ends)]
    return made
