"""Layers that draw random numbers: the same in every run where the model gives a seed, else others."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.layers.base import layer
from perframe.spec import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType

_FLOATS = (DataType.FLOAT32, DataType.FLOAT64, DataType.FLOAT16, DataType.BFLOAT16)


def _drawn(shape: DynamicTensorShape | None, dtype: DataType) -> PartialTensor:
    if dtype not in _FLOATS:
        raise InferenceError(f"random numbers are floats, and {dtype} was asked for")
    return PartialTensor(dtype, shape)


@layer(pure=False)
def RandomNormal(
    *,
    shape: Sequence[int],
    dtype: DataType = DataType.FLOAT32,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> PartialTensor:
    return _drawn(DynamicTensorShape(shape), dtype)


@layer(pure=False)
def RandomUniform(
    *,
    shape: Sequence[int],
    dtype: DataType = DataType.FLOAT32,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> PartialTensor:
    return _drawn(DynamicTensorShape(shape), dtype)


@layer(pure=False)
def RandomNormalLike(
    x: PartialTensor,
    *,
    dtype: DataType | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> PartialTensor:
    return _drawn(x.shape, dtype or x.dtype)


@layer(pure=False)
def RandomUniformLike(
    x: PartialTensor,
    *,
    dtype: DataType | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> PartialTensor:
    return _drawn(x.shape, dtype or x.dtype)


@layer(pure=False)
def Bernoulli(x: PartialTensor, *, dtype: DataType | None = None, seed: float | None = None) -> PartialTensor:
    return x.with_shape(x.shape, dtype or x.dtype)


@layer(pure=False)
def Multinomial(
    x: PartialTensor, *, dtype: DataType = DataType.INT32, sample_size: int = 1, seed: float | None = None
) -> PartialTensor:
    if dtype not in (DataType.INT32, DataType.INT64):
        raise InferenceError(f"Multinomial draws indices, and {dtype} was asked for")
    if x.shape is not None and len(x.shape) != 2:
        raise InferenceError(f"Multinomial takes logarithms of shape (batch, classes), not {x}")
    return x.with_shape((x.shape[0] if x.shape is not None else None, sample_size), dtype)
