"""Gathering on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.lowering import mover, sharing, step
from perframe.backends.cpu.program import NativeStep
from perframe.errors import BackendError
from perframe.layers.gather import Elements, Indexing, Tuples
from perframe.layers.geometry import row_major
from perframe.tensor import DataType


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Elements taken by index."""
    return [_COMPUTE[type(form)](form, inputs[0], inputs[1])]


def _rows(form: Indexing, x: Any, indices: Any) -> Any:
    return np.take(x.reshape(form.outer, form.size, form.inner), indices.reshape(-1), axis=1)


def _elements(form: Elements, x: Any, indices: Any) -> Any:
    at = wrapped(indices, form.size) * form.step
    for axis, (dim, stride) in enumerate(zip(form.shape, form.strides, strict=True)):
        at = at + np.arange(dim).reshape(-1, *(1,) * (len(form.shape) - axis - 1)) * stride
    return x.reshape(-1)[at]


def _tuples(form: Tuples, x: Any, indices: Any) -> Any:
    at = addresses(form, indices).reshape(form.batch, form.count) + np.arange(form.batch)[:, None] * form.rows
    return x.reshape(form.batch * form.rows, form.inner)[at]


_COMPUTE: dict[type, Callable[[Any, Any, Any], Any]] = {Indexing: _rows, Elements: _elements, Tuples: _tuples}


def wrapped(indices: Any, size: int) -> Any:
    """Indices counted from the front. Raises IndexError."""
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise IndexError(f"indices from {indices.min()} to {indices.max()} reach beyond {size} elements")
    wide = indices.astype(np.int64)
    return np.where(wide < 0, wide + size, wide)


def addresses(form: Tuples, indices: Any) -> Any:
    """The rows that tuples of indices name, counted within their batch."""
    columns = indices.reshape(form.batch * form.count, len(form.dims))
    total = np.zeros(len(columns), np.int64)
    for column, dim, stride in zip(columns.T, form.dims, row_major(form.dims), strict=True):
        total += wrapped(column, dim) * stride
    return total


def lower(
    layer: LayerLike, form: Any, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """A kernel that checks the indices, and leaves word of one that reaches beyond the data."""
    x, indices = inputs[0], inputs[1]
    if not isinstance(form, Indexing) or x is None or indices is None:
        return None
    kernel = mover("gather", x)
    if kernel is None or indices.dtype not in (DataType.INT64, DataType.INT32):
        return None
    word = np.zeros(2, np.int64)

    def check() -> None:
        if word[0]:
            word[0] = 0
            raise BackendError(
                f"layer {layer.name!r} ({layer.op}) failed: index {word[1]} reaches beyond {form.size} elements"
            )

    items = form.outer * form.count
    numbers = [word.ctypes.data, int(indices.dtype is DataType.INT32), form.size, form.inner, form.count]
    operands, grain = [x, indices, outputs[0]], sharing(items, items * form.inner)
    return [step(layer, kernel, operands, numbers, items, keep=[word], grain=grain, check=check)]
