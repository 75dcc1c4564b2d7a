"""Gathering on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import GATHER, GATHER_ELEMENTS, GATHER_ERROR, GATHER_TUPLES
from perframe.backends.cpu.lowering.lowering import mover, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.errors import BackendError
from perframe.ir.geometry import row_major
from perframe.layers.gather import Elements, Indexing, Tuples
from perframe.tensor import DataType


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Take elements by index."""
    return [_COMPUTE[type(form)](form, inputs[0], inputs[1])]


def _rows(form: Indexing, x: Any, indices: Any) -> Any:
    return np.take(x.reshape(form.outer, form.size, form.inner), wrapped(indices, form.size).reshape(-1), axis=1)


def _elements(form: Elements, x: Any, indices: Any) -> Any:
    at = wrapped(indices, form.size) * form.step
    for axis, (dim, stride) in enumerate(zip(form.shape, form.strides, strict=True)):
        at = at + np.arange(dim).reshape(-1, *(1,) * (len(form.shape) - axis - 1)) * stride
    return x.reshape(-1)[at]


def _tuples(form: Tuples, x: Any, indices: Any) -> Any:
    at = addresses(form, indices).reshape(form.batch, form.count) + np.arange(form.batch)[:, None] * form.rows
    return x.reshape(form.batch * form.rows, form.inner)[at]


_COMPUTE: dict[type, Callable[[Any, Any, Any], Any]] = {Indexing: _rows, Elements: _elements, Tuples: _tuples}


_KERNELS: dict[type, str] = {Indexing: "gather", Elements: "gather.elements", Tuples: "gather.tuples"}


def wrapped(indices: Any, size: int) -> Any:
    """Return valid indices counted from the front: a negative index counts from the end of `size` elements."""
    wide = indices.astype(np.int64)
    return np.where(wide < 0, wide + size, wide)


def addresses(form: Tuples, indices: Any) -> Any:
    """The rows to which tuples of indices point, counted within their batch."""
    columns = indices.reshape(form.batch * form.count, len(form.dims))
    total = np.zeros(len(columns), np.int64)
    for column, dim, stride in zip(columns.T, form.dims, row_major(form.dims), strict=True):
        total += wrapped(column, dim) * stride
    return total


def lower(
    layer: LayerLike, form: Any, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Native steps. The kernel checks each index, and notes one that reaches beyond the data; the step's check then
    raises BackendError.
    """
    x, indices = inputs[0], inputs[1]
    if x is None or indices is None or indices.dtype not in (DataType.INT64, DataType.INT32) or layer.epilogue:
        return None
    kernel = mover(_KERNELS[type(form)], x)
    if kernel is None:
        return None
    error, check = index_check(layer)
    known = {"error": error.ctypes.data, "is_short": int(indices.dtype is DataType.INT32)}
    if isinstance(form, Indexing):
        items, elements = form.outer * form.count, form.outer * form.count * form.inner
        numbers = GATHER.numbers(**known, size=form.size, inner=form.inner, count=form.count)
    elif isinstance(form, Elements):
        items, elements = math.prod(form.shape[:-1]), 2 * math.prod(form.shape)
        fixed = GATHER_ELEMENTS.numbers(**known, size=form.size, step=form.step, rank=len(form.shape))
        numbers = [*fixed, *form.shape, *form.strides]
    else:
        items = form.batch * form.count
        elements = items * (form.inner + 2 * len(form.dims))
        sizes = {"count": form.count, "inner": form.inner, "rows": form.rows, "rank": len(form.dims)}
        numbers = [*GATHER_TUPLES.numbers(**known, **sizes), *form.dims, *row_major(form.dims)]
    operands, grain = GATHER.operands(x=x, indices=indices, out=outputs[0]), sharing(items, elements)
    return [step(layer, kernel, operands, numbers, items, keep=[error], grain=grain, check=check)]


def index_check(layer: LayerLike) -> tuple[Any, Callable[[], None]]:
    """Return memory in which a kernel notes a wrong index, and the step's check, which then raises BackendError."""
    error, wrong = np.zeros(len(GATHER_ERROR.at), np.int64), GATHER_ERROR.at

    def check() -> None:
        if error[wrong.is_wrong]:
            error[wrong.is_wrong] = 0
            raise BackendError(
                f"layer {layer.name!r} ({layer.op}) failed: index {error[wrong.index]} reaches beyond "
                f"{error[wrong.size]} elements"
            )

    return error, check
