"""Layers that keep some elements. The number of elements depends on the data, so these layers run between plans."""

from __future__ import annotations

import numpy as np

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import layer, normalize_axis
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor
from perframe.tensor import DataType


@layer(on_host=True)
def NonZero(x: PartialTensor) -> PartialTensor:
    count: Dim = None if x.value is None else int(np.count_nonzero(x.value))
    rank = None if x.shape is None else len(x.shape)
    return x.with_shape((rank, count), DataType.INT64)


@layer(on_host=True)
def Compress(x: PartialTensor, condition: PartialTensor, *, axis: int | None = None) -> PartialTensor:
    count: Dim = None
    if x.shape is not None:
        size = x.shape.size if axis is None else x.shape[normalize_axis(axis, len(x.shape))]
        if condition.value is not None and isinstance(size, int):
            count = int(np.count_nonzero(condition.value[:size]))
    if axis is None:
        return x.with_shape((count,))
    if x.shape is None:
        return x.with_shape(None)
    at = normalize_axis(axis, len(x.shape))
    return x.with_shape((*x.shape[:at], count, *x.shape[at + 1 :]))


@layer(on_host=True)
def FilledRows(x: PartialTensor) -> PartialTensor:
    """Return the rows of a table that do not begin with -1."""
    count: Dim = None if x.value is None else int(np.count_nonzero(x.value[:, 0] != -1))
    return x.with_shape((count, *(x.shape or (None, None))[1:]))


@layer(on_host=True)
def Unique(x: PartialTensor, *, axis: int | None = None, sorted: Flag = 1) -> tuple[PartialTensor, ...]:
    if axis is not None and x.shape is not None and not x.shape:
        raise InferenceError(f"{x} has no axis {axis}")
    size: Dim = None
    dims: tuple[Dim, ...] | None = (None,)
    if axis is not None:
        at = None if x.shape is None else normalize_axis(axis, len(x.shape))
        dims = None if x.shape is None or at is None else (*x.shape[:at], None, *x.shape[at + 1 :])
        size = None if x.shape is None or at is None else x.shape[at]
    elif x.shape is not None:
        size = x.shape.size
    found = PartialTensor(DataType.INT64, DynamicTensorShape((None,)))
    return x.with_shape(dims), found, PartialTensor(DataType.INT64, DynamicTensorShape((size,))), found
