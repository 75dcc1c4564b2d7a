"""Layers that make small tensors from shapes and numbers.

The plan evaluates them; no backend has a kernel for them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.layers.base import layer
from perframe.tensor import DataType
from perframe.tensor.partial import (
    MAX_ENTRIES,
    DynamicTensorShape,
    PartialTensor,
    dim_product,
    is_number,
    to_entry,
    to_number,
)

_INT64 = DataType.INT64


@layer()
def Shape(x: PartialTensor, *, start: int = 0, end: int | None = None) -> PartialTensor:
    if x.shape is None:
        return PartialTensor(_INT64, DynamicTensorShape((None,)))
    return PartialTensor.of_entries(_INT64, x.shape[start:end])


@layer()
def Size(x: PartialTensor) -> PartialTensor:
    size = np.array(None if x.shape is None else dim_product(*x.shape), object)
    return PartialTensor.of_entries(_INT64, size)


Shape.reads_values = Size.reads_values = False


@layer(host=("shape",))
def ConstantOfShape(shape: PartialTensor, *, value: object = None) -> PartialTensor:
    filler = np.zeros((), np.float32) if value is None else np.asarray(value).reshape(())
    dtype = DataType.of(filler.dtype)
    if shape.elements is None:
        rank = shape.shape[0] if shape.shape else None
        return PartialTensor(dtype, DynamicTensorShape((None,) * rank) if isinstance(rank, int) else None)
    made = PartialTensor(dtype, DynamicTensorShape(shape.elements))
    if made.shape is None or made.shape.size is None or made.shape.size > MAX_ENTRIES:
        return made
    return PartialTensor.of(np.full(made.shape.to_shape(), filler))


def _entry(scalar: PartialTensor) -> Any:
    """Return the entry of a single number; None if it is unknown."""
    if scalar.value is not None:
        return scalar.value.item()
    return None if scalar.known is None else scalar.known.item()


@layer(host=("start", "limit", "delta"))
def Range(start: PartialTensor, limit: PartialTensor, delta: PartialTensor) -> PartialTensor:
    first, last, step = map(_entry, (start, limit, delta))
    if not all(map(is_number, (first, last, step))):
        length = to_entry(to_number(last) - to_number(first)) if step == 1 else None
        return PartialTensor(start.dtype, DynamicTensorShape((length,)))
    count = max(0, math.ceil((last - first) / step))
    if start.dtype.is_float or count > MAX_ENTRIES:
        return PartialTensor(start.dtype, DynamicTensorShape((count,)))
    return PartialTensor.of(np.arange(count, dtype=start.dtype.numpy) * step + first)
