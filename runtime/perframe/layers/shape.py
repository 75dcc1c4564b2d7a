"""Layers that make small tensors out of shapes and numbers.

The plan evaluates them; no backend has a kernel for them.
"""

from __future__ import annotations

import math

from perframe.layers.base import layer
from perframe.spec import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType

_INT64 = DataType.INT64


@layer()
def Shape(x: PartialTensor, *, start: int = 0, end: int | None = None) -> PartialTensor:
    if x.shape is None:
        return PartialTensor(_INT64, DynamicTensorShape((None,)))
    dims = x.shape[start:end]
    return PartialTensor(_INT64, DynamicTensorShape((len(dims),)), None, tuple(dims))


@layer()
def Size(x: PartialTensor) -> PartialTensor:
    size = None if x.shape is None else x.shape.size
    return PartialTensor(_INT64, DynamicTensorShape(()), None, (size,))


@layer(host=("shape",))
def ConstantOfShape(shape: PartialTensor, *, value: object = None) -> PartialTensor:
    dtype = DataType.of(getattr(value, "dtype", DataType.FLOAT32))
    if shape.elements is None:
        rank = shape.shape[0] if shape.shape else None
        return PartialTensor(dtype, DynamicTensorShape((None,) * rank) if isinstance(rank, int) else None)
    return PartialTensor(dtype, DynamicTensorShape(shape.elements))


@layer(host=("start", "limit", "delta"))
def Range(start: PartialTensor, limit: PartialTensor, delta: PartialTensor) -> PartialTensor:
    values = [value.value for value in (start, limit, delta)]
    count = None
    if all(value is not None for value in values):
        first, last, step = (value.item() for value in values if value is not None)
        count = max(0, math.ceil((last - first) / step))
    return PartialTensor(start.dtype, DynamicTensorShape((count,)))
