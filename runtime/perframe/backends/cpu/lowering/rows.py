"""Rows with gaps: values that lie within wider ones, such as the parts of a join, so that nobody copies them there.

A row is the last dim. All rows of a value have one pitch, so that kernels need one number more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.layers.geometry import Ints, row_major
from perframe.tensor import DataType, HostStorage


def extent(shape: Sequence[int], pitch: int) -> int:
    """The elements from the first to the last, gaps between rows included."""
    size = math.prod(shape)
    return (size // shape[-1] - 1) * pitch + shape[-1] if size and shape else size


def array_of(storage: HostStorage, shape: Sequence[int], dtype: DataType, pitch: int) -> Any:
    """The values as an array."""
    if not shape or pitch == shape[-1] or not math.prod(shape):
        return storage.view(shape, dtype)
    flat = storage.view((extent(shape, pitch),), dtype)
    steps = tuple(step * dtype.numpy.itemsize for step in (*_leading(shape, pitch), 1))
    return np.lib.stride_tricks.as_strided(flat, tuple(shape), steps)


def _leading(shape: Sequence[int], pitch: int) -> Ints:
    return tuple(step // shape[-1] * pitch for step in row_major(shape)[:-1])


def walk(value: Operand, strides: Sequence[int], shape: Sequence[int], first: int = 0) -> tuple[Ints, int] | None:
    """The (strides, first element) of a walk over a value, from those that it would have without gaps; None where
    the walk goes from one row to the next in any other way than by whole rows.
    """
    if not value.has_gaps:
        return tuple(strides), first
    return through(strides, shape, first, value.shape[-1], value.pitch)


def through(strides: Sequence[int], shape: Sequence[int], first: int, row: int, pitch: int) -> tuple[Ints, int] | None:
    """The same for rows of so many elements."""
    within = [(dim - 1) * step for dim, step in zip(shape, strides, strict=True) if step % row and dim > 1]
    if any(step < 0 for step in within) or first % row + sum(within) >= row:
        return None
    turned = tuple(step if step % row else step // row * pitch for step in strides)
    return turned, first // row * pitch + first % row
