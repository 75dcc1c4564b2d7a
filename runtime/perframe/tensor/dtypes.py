"""Data types, concrete shapes, and the names of the backends."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InputError

Array = NDArray[Any]


class BackendType(enum.StrEnum):
    """The backend of a worker, and of a tensor's data: "cpu", "gpu_compute" or "gpu_pixel"."""

    CPU = "cpu"
    GPU_COMPUTE = "gpu_compute"
    GPU_PIXEL = "gpu_pixel"


class DataType(enum.StrEnum):
    """The element type of a tensor, such as "float32" or "int64": ONNX's types, by NumPy's names."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    STRING = "object"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    FLOAT8E4M3FN = "float8_e4m3fn"
    FLOAT8E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8E5M2 = "float8_e5m2"
    FLOAT8E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8E8M0 = "float8_e8m0fnu"
    FLOAT4E2M1 = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"

    __hash__ = str.__hash__  # Enum's own hash takes many times as long, and dtypes are keys in many tables

    @classmethod
    def of(cls, dtype: Any) -> DataType:
        """Return the data type of a NumPy dtype or of its name. Raises InputError where a tensor cannot have it."""
        return dtype if isinstance(dtype, DataType) else _data_type(dtype)

    @functools.cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype, or the one of ml_dtypes where NumPy has none."""
        try:
            return np.dtype(self.value)
        except TypeError:
            import ml_dtypes

            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.value))
            return found

    @functools.cached_property
    def is_float(self) -> bool:
        """Whether this is a real floating point type."""
        return "float" in self.value


@functools.cache
def _data_type(dtype: Any) -> DataType:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name.startswith("str"):
        name = "object"
    try:
        return DataType(name)
    except ValueError:
        raise InputError(f"dtype {dtype!r} is not one of {', '.join(DataType)}") from None


def _whole(dim: Any) -> int:
    """Return a dim as an int, or a symbolic size unchanged."""
    return +dim if isinstance(dim, int) else int(dim)


def check_shape(shape: Any) -> None:
    """Raise InputError unless a caller's shape is a tuple or list of integers of at least 0."""
    if not isinstance(shape, (tuple, list)) or not all(isinstance(dim, Integral) and int(dim) >= 0 for dim in shape):
        raise InputError(f"a shape is a tuple of integers of at least 0, as (1, 3, 4, 4), and got {shape!r}")


class TensorShape(tuple[int, ...]):
    """A concrete shape: a tuple of ints with a few names."""

    def __new__(cls, dims: Iterable[int] = ()) -> TensorShape:
        """Make a shape from ints; other numbers are converted."""
        if type(dims) is cls:
            return dims
        return super().__new__(cls, [dim if type(dim) is int else _whole(dim) for dim in dims])

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self)

    @property
    def strides(self) -> tuple[int, ...]:
        """Row-major strides, in elements."""
        strides, step = [], 1
        for dim in reversed(self):
            strides.append(step)
            step *= dim
        return tuple(reversed(strides))

    def __repr__(self) -> str:
        return f"({', '.join(map(str, self))})"
