"""Rows with gaps between them. A value has gaps if it lies within a wider one, such as a part of a join. Its layer
writes it there, and no step has to copy it.

A row is the last dim. All rows of a value have the same pitch, so that a kernel needs only one more number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.ir.geometry import Ints, row_major
from perframe.tensor import DataType, HostStorage


def extent(shape: Sequence[int], pitch: int) -> int:
    """The number of elements from the first to the last, including gaps between rows."""
    size = math.prod(shape)
    return (size // shape[-1] - 1) * pitch + shape[-1] if size and shape else size


def array_of(storage: HostStorage, shape: Sequence[int], dtype: DataType, pitch: int) -> Any:
    """A view of the storage as an array."""
    if not shape or pitch == shape[-1] or not math.prod(shape):
        return storage.view(shape, dtype)
    flat = storage.view((extent(shape, pitch),), dtype)
    steps = tuple(step * dtype.numpy.itemsize for step in (*_leading(shape, pitch), 1))
    return np.lib.stride_tricks.as_strided(flat, tuple(shape), steps)


def _leading(shape: Sequence[int], pitch: int) -> Ints:
    return tuple(step // shape[-1] * pitch for step in row_major(shape)[:-1])


def walk(value: Operand, strides: Sequence[int], shape: Sequence[int], first: int = 0) -> tuple[Ints, int] | None:
    """(strides, first element) of a walk over a value, from those of the walk over a value without gaps. None if
    strides that are not whole rows lead out of a row.
    """
    if not value.has_gaps:
        return tuple(strides), first
    return through(strides, shape, first, value.shape[-1], value.pitch)


def through(strides: Sequence[int], shape: Sequence[int], first: int, row: int, pitch: int) -> tuple[Ints, int] | None:
    """Do the same as `walk` for rows of `row` elements that lie `pitch` elements apart."""
    within = [(dim - 1) * step for dim, step in zip(shape, strides, strict=True) if step % row and dim > 1]
    if any(step < 0 for step in within) or first % row + sum(within) >= row:
        return None
    turned = tuple(step if step % row else step // row * pitch for step in strides)
    return turned, first // row * pitch + first % row
