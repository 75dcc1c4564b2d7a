"""Scattering on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.families.gather import addresses, index_check, wrapped
from perframe.backends.cpu.kernels.fields import SCATTER_AGAIN, SCATTER_ELEMENTS, SCATTER_ROWS, SCATTER_TUPLES
from perframe.backends.cpu.kernels.sizes import MAX_RANK, RUN
from perframe.backends.cpu.lowering.lowering import element_size, sharing, step, strided_copy
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.geometry import collapse, row_major
from perframe.layers.scatter import RowUpdate, Scattering
from perframe.tensor import DataType

_REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Write the updates into a copy of the data. A second output gets the numbers of the replaced rows."""
    return list(_COMPUTE[type(form)](form, inputs))


def _scatter(form: Scattering, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """Apply the updates in their order. Reductions of float16 compute in float32."""
    x, indices, updates = inputs
    at = wrapped(indices, form.shape[form.axis]) if form.by is None else addresses(form.by, indices)
    spread = np.lib.stride_tricks.as_strided(
        np.ascontiguousarray(at), form.extent, tuple(step * 8 for step in form.steps)
    )
    strides = row_major(form.shape)
    targets = spread * strides[form.axis]
    for axis, (dim, stride) in enumerate(zip(form.extent, strides, strict=True)):
        if axis != form.axis:
            targets = targets + np.arange(dim).reshape(-1, *(1,) * (len(form.extent) - axis - 1)) * stride
    targets, updates = targets.reshape(-1), updates.reshape(-1)
    if form.reduction == "none":
        result = x.reshape(-1).copy()
        result[targets] = updates
        return result, at
    narrow = x.dtype.kind not in "biufc" or x.dtype == np.float16
    wide = np.dtype(np.float32) if narrow else x.dtype
    result = x.reshape(-1).astype(wide)
    _REDUCTIONS[form.reduction].at(result, targets, updates.astype(wide))
    return result.astype(x.dtype), at


def _rows(form: RowUpdate, inputs: Sequence[Any]) -> tuple[Any, Any]:
    x, update, begin = inputs
    result = x.reshape(form.batch, form.outer, form.size, form.inner).copy()
    first = np.zeros(form.batch, np.int64) if begin is None else begin.reshape(-1)
    at = first[:, None] + np.arange(form.count)
    at = at % max(form.size, 1)
    for batch, rows in enumerate(update.reshape(form.batch, form.outer, form.count, form.inner)):
        result[batch][:, at[batch]] = rows
    lines = np.arange(form.batch * form.outer).reshape(form.batch, form.outer, 1) * form.size
    return result, lines + at[:, None]


_COMPUTE: dict[type, Callable[[Any, Sequence[Any]], tuple[Any, Any]]] = {Scattering: _scatter, RowUpdate: _rows}


def overwrites(layer: LayerLike) -> int | None:
    """The data: all but the replaced elements stay."""
    return 0


def lower(
    layer: LayerLike,
    form: Scattering | RowUpdate,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Native steps: a copy of the data, unless the updates overwrite it, and the updates in their order. If a second
    output names the rows in which the first one differs from the data, these are copied.
    """
    x, indices, updates = (*inputs[:3], None)[:3]
    if layer.epilogue or x is None or not x.shape.size:
        return None
    if isinstance(form, RowUpdate):
        assert indices is not None
        return _lower_rows(layer, form, x, indices, updates, outputs)
    if indices is None or updates is None:
        return None
    dtype = _MOVED.get(element_size(x)) if form.reduction == "none" else _COMBINED.get(x.dtype)
    if dtype is None or indices.dtype not in (DataType.INT64, DataType.INT32):
        return None
    y, notes = outputs[0], len(outputs) > 1
    copy = _copies(layer, form, x, outputs, dtype)
    if form.slice is not None and not notes:
        shape, strides = form.slice.shape, form.slice.strides
        if len(collapse(shape, (strides, row_major(shape)))[0]) <= MAX_RANK:
            return [*copy, strided_copy(layer, updates, y, shape, row_major(shape), strides, 0, form.slice.offset)]
    text = f"dtype = {dtype!r}\n@inline\ndef combine(old, new):\n    return {_FORMULAS[form.reduction]}\n"
    error, check = index_check(layer)
    known = {"error": error.ctypes.data, "is_short": int(indices.dtype is DataType.INT32)}
    if form.by is None:
        operands = SCATTER_ELEMENTS.operands(indices=indices, updates=updates, out=y)
        kernel, (numbers, items) = "scatter.elements", _of_elements(form, known)
    else:
        operands = SCATTER_TUPLES.operands(indices=indices, updates=updates, replaced=outputs[-1], out=y)
        kernel, items = "scatter.tuples", -(-form.by.inner // RUN)
        sizes = {"count": form.by.count, "inner": form.by.inner, "rank": len(form.by.dims), "notes": int(notes)}
        numbers = [*SCATTER_TUPLES.numbers(**known, **sizes), *form.by.dims, *row_major(form.by.dims)]
    grain = sharing(items, 2 * math.prod(form.extent))
    return [*copy, step(layer, kernel, operands, numbers, items, text, [error], grain=grain, check=check)]


def _copies(
    layer: LayerLike, form: Scattering | RowUpdate, x: Operand, outputs: Sequence[Operand], dtype: str
) -> list[NativeStep]:
    """The step that copies the data, or those rows in which the output may differ; none if the output lies there."""
    y, size = outputs[0], x.shape.size
    if len(outputs) == 1:
        return [] if y.lies_in(x, 0) else [strided_copy(layer, x, y, (size,), (1,), (1,))]
    inner = form.inner if isinstance(form, RowUpdate) else form.shape[1]
    replaced = outputs[1].shape.size
    operands = SCATTER_AGAIN.operands(x=x, replaced=outputs[1], out=y)
    numbers, grain = SCATTER_AGAIN.numbers(rows=size // inner, inner=inner), sharing(replaced, replaced * inner)
    return [step(layer, "scatter.again", operands, numbers, replaced, f"dtype = {dtype!r}\n", grain=grain)]


def _lower_rows(
    layer: LayerLike,
    form: RowUpdate,
    x: Operand,
    updates: Operand,
    begins: Operand | None,
    outputs: Sequence[Operand],
) -> list[NativeStep] | None:
    dtype = _MOVED.get(element_size(x))
    if dtype is None or (begins is not None and begins.dtype not in (DataType.INT64, DataType.INT32)):
        return None
    copy, rows = _copies(layer, form, x, outputs, dtype), form.replaced
    if not rows:
        return copy
    error, check = index_check(layer)
    numbers = SCATTER_ROWS.numbers(
        error=error.ctypes.data,
        is_short=int(begins is not None and begins.dtype is DataType.INT32),
        notes=int(len(outputs) > 1),
        has_begin=int(begins is not None),
        lines=form.outer,
        size=form.size,
        inner=form.inner,
        count=form.count,
        most=-1 if form.circular else form.size - form.count,
    )
    operands = SCATTER_ROWS.operands(begins=begins or updates, updates=updates, replaced=outputs[-1], out=outputs[0])
    grain = sharing(rows, 2 * form.inner)
    text = f"dtype = {dtype!r}\n"
    return [*copy, step(layer, "scatter.rows", operands, numbers, rows, text, [error], grain=grain, check=check)]


def _of_elements(form: Scattering, known: dict[str, int]) -> tuple[list[int], int]:
    """The numbers and the items of the kernel for elements. Updates of different items go to different elements."""
    last, axis = len(form.shape) - 1, form.axis
    strides, update_strides = row_major(form.shape), row_major(form.extent)
    others = [at for at in range(last) if at != axis]
    inner = 1 if axis == last else form.extent[last]
    blocks = -(-inner // RUN)
    numbers = SCATTER_ELEMENTS.numbers(
        **known,
        size=form.shape[axis],
        step=strides[axis],
        count=form.extent[axis],
        update_step=update_strides[axis],
        inner=inner,
        blocks=blocks,
        rank=len(others),
    )
    dims = [form.extent[at] for at in others]
    numbers += [*dims, *(strides[at] for at in others), *(update_strides[at] for at in others)]
    return numbers, math.prod(dims) * blocks


_FORMULAS = {
    "none": "new",
    "add": "old + new",
    "mul": "old * new",
    "max": "maximum(old, new)",
    "min": "minimum(old, new)",
}
# by the bytes of an element, the dtype as which kernels move it; and the dtypes in which they combine elements
_MOVED = {1: "uint8", 2: "uint16", 4: "int32", 8: "int64"}
_COMBINED = {
    DataType(dtype): dtype
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64")
}
