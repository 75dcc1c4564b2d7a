"""Selection along an axis on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import ARG, MARKS, SORT, TOP
from perframe.backends.cpu.kernels.sizes import FEW_ELEMENTS, ROWS_TOGETHER, RUN
from perframe.backends.cpu.lowering.casting import is_native
from perframe.backends.cpu.lowering.lowering import sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.select import Selection
from perframe.tensor import DataType

_ARG = {DataType.FLOAT32: "select", DataType.INT32: "select.of_int32", DataType.INT64: "select.of_int64"}
# the kernel that keeps the first few, and the one that sorts whole rows
_TOP: dict[DataType, tuple[str, ...]] = {
    DataType.FLOAT32: ("select.top", "sort"),
    DataType.INT32: ("select.top_of_int32", "sort.of_int32"),
    DataType.INT64: ("select.top_of_int64",),
}
LONG = 32  # elements of a row that is sorted by digits, if most of it is wanted


def _positions(rows: Any, form: Selection) -> Any:
    """The position of the largest or smallest element of each row, (outer, inner)."""
    find = np.argmax if form.largest else np.argmin  # both find NaN first
    if form.last:
        return form.size - 1 - find(rows[:, ::-1], axis=1)
    return find(rows, axis=1)


def _arg(rows: Any, x: Any, form: Selection) -> list[Any]:
    return [_positions(rows, form)]


def _hard(rows: Any, x: Any, form: Selection) -> list[Any]:
    if not form.size:
        return [x]
    steps = np.arange(form.size).reshape(1, -1, 1)
    return [(steps == _positions(rows, form)[:, None, :]).astype(np.float32)]


def _top(rows: Any, x: Any, form: Selection) -> list[Any]:
    """Sort stably. To get the largest first, sort the flipped row and reverse the result."""
    if form.largest:
        order = form.size - 1 - np.argsort(rows[:, ::-1], axis=1, kind="stable")[:, ::-1]
    else:
        order = np.argsort(rows, axis=1, kind="stable")
    order = order[:, : form.count]
    return [np.take_along_axis(x, order, 1), order]


_COMPUTE: dict[str, Callable[[Any, Any, Selection], list[Any]]] = {
    "indices": _arg,
    "marks": _hard,
    "elements": _top,
}


def compute(layer: LayerLike, form: Selection, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute on (outer, size, inner). Floats that NumPy does not know are compared as float32."""
    x = inputs[0].reshape(form.outer, form.size, form.inner)
    return _COMPUTE[form.result](x if is_native(x.dtype) else x.astype(np.float32), x, form)


def lower(
    layer: LayerLike, form: Selection, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Native steps for float32, int32 and int64: positions, or the first few elements."""
    x = inputs[0]
    if x is None or x.dtype not in _ARG or layer.channels_last or layer.epilogue or not form.size:
        return None
    elements = 2 * form.outer * form.size * form.inner  # a comparison costs some two copies
    if form.result == "indices":
        return [_position_step(layer, form, x, outputs[0])]
    if form.result == "marks" and outputs[0].dtype is DataType.FLOAT32:
        positions, items = scratch((form.outer, form.inner), DataType.INT64), form.outer * form.size
        operands = MARKS.operands(positions=positions, out=outputs[0])
        numbers, grain = MARKS.numbers(size=form.size, inner=form.inner), sharing(items, elements)
        marks = step(layer, "select.marks", operands, numbers, items, grain=grain)
        return [_position_step(layer, form, x, positions), marks]
    if form.result == "elements" and len(outputs) == 2:
        items = form.outer * form.inner
        sizes = {"size": form.size, "inner": form.inner, "count": form.count, "takes_largest": int(form.largest)}
        chosen = {"x": x, "values": outputs[0], "indices": outputs[1]}
        kernels, grain = _TOP[x.dtype], sharing(items, 2 * elements)
        if len(kernels) > 1 and form.size >= LONG and form.size <= 4 * form.count:
            operands = SORT.operands(**chosen, keys=scratch((items, 2, form.size), DataType.INT64))
            numbers = SORT.numbers(**sizes)
            return [step(layer, kernels[1], operands, numbers, items, grain=grain, beside=kernels)]
        numbers = TOP.numbers(**sizes)
        return [step(layer, kernels[0], TOP.operands(**chosen), numbers, items, grain=grain, beside=kernels)]
    return None


def _position_step(layer: LayerLike, form: Selection, x: Operand, out: Operand) -> NativeStep:
    """The step that finds the positions."""
    rows = ROWS_TOGETHER if x.dtype is not DataType.INT64 and form.size <= FEW_ELEMENTS else 1
    items = -(-form.outer // rows) if form.inner == 1 else form.outer * -(-form.inner // RUN)
    flags = {"takes_largest": int(form.largest), "takes_last": int(form.last)}
    numbers = ARG.numbers(size=form.size, inner=form.inner, outer=form.outer, **flags)
    grain = sharing(items, 2 * form.outer * form.size * form.inner)
    return step(layer, _ARG[x.dtype], ARG.operands(x=x, out=out), numbers, items, grain=grain)
