"""Reductions on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import REDUCE, REDUCE_COLUMNS
from perframe.backends.cpu.kernels.sizes import RUN
from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.cpu.lowering.lowering import sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.formula import translate
from perframe.layers.reduce import Reduction, average, identity, keep
from perframe.tensor import DataType

_COMBINE: dict[str, Any] = {"sum": np.add, "product": np.multiply, "largest": np.maximum, "smallest": np.minimum}
_EMPTY = {"sum": 0, "product": 1, "largest": -math.inf, "smallest": math.inf, "log_sum_exp": -math.inf}


def compute(layer: LayerLike, form: Reduction, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Reduce with NumPy between the two formulas."""
    x = inputs[0].astype(accumulator(inputs[0].dtype), copy=False)
    if form.finish is average and x.dtype.kind in "iu":  # a mean is in range where its sum may not be
        x = x.astype(np.int64 if x.dtype.kind == "i" else np.uint64, copy=False)
    prepared, count = form.prepare(x), np.asarray(form.count).astype(x.dtype)
    if x.size == 0:
        shape = [1 if axis in form.axes else dim for axis, dim in enumerate(x.shape)]
        total = np.full(shape, _empty(form.combine, x.dtype), x.dtype)
    elif form.combine == "log_sum_exp":
        total = _log_sum_exp(prepared, form.axes)
    elif form.axes:
        combine = _COMBINE[form.combine]
        total = combine.reduce(prepared, axis=form.axes, keepdims=True, dtype=prepared.dtype)
    else:
        total = prepared
    return [form.finish(total, count)]


def _empty(combine: str, dtype: Any) -> Any:
    """The result for no elements: as the largest, the dtype's smallest number, and the other way round."""
    start = _EMPTY[combine]
    if math.isinf(start) and dtype.kind == "b":
        return start > 0
    if math.isinf(start) and dtype.kind not in "fc":
        return np.iinfo(dtype).min if start < 0 else np.iinfo(dtype).max
    return start


def _log_sum_exp(x: Any, axes: Sequence[int]) -> Any:
    """Shifted by the largest, so that nothing overflows."""
    x = x.astype(np.promote_types(x.dtype, np.float32), copy=False)
    largest = x.max(axis=tuple(axes), keepdims=True)
    shift = np.where(np.isinf(largest), 0, largest).astype(x.dtype)
    return np.log(np.exp(x - shift).sum(axis=tuple(axes), keepdims=True)) + shift


def lower(
    layer: LayerLike, form: Reduction, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Reductions of at least one element: float32, and sums, means, products and extremes of integers."""
    x = inputs[0]
    if x is None or x.dtype is not outputs[0].dtype or not x.shape.size:
        return None
    whole = _whole(form, x.dtype)
    if x.dtype is not DataType.FLOAT32 and (whole is None or layer.epilogue):
        return None
    numbers = REDUCE.numbers(kept_rank=len(form.kept), reduced_rank=len(form.reduced))
    numbers += [*form.kept, *form.kept_strides, *form.reduced, *form.reduced_strides]
    items, operands = math.prod(form.kept), REDUCE.operands(x=x, out=outputs[0])
    if form.combine == "log_sum_exp":
        grain = sharing(items, 4 * x.shape.size)  # an exponential is some four copies
        return [step(layer, "reduce.log_sum_exp", operands, numbers, items, grain=grain)]
    text = _formulas(form) if whole is None else whole
    kernel, by_columns = kernels = _kernels(form.combine, whole is not None)
    if _combines_rows(form):
        groups, group_step = (form.kept[0], form.kept_strides[0]) if len(form.kept) == 2 else (1, 0)
        rows, pitch, columns = form.reduced[0], form.reduced_strides[0], form.kept[-1]
        kernel, items = by_columns, groups * -(-columns // RUN)
        numbers = REDUCE_COLUMNS.numbers(rows=rows, pitch=pitch, columns=columns, group_step=group_step)
        operands = REDUCE_COLUMNS.operands(x=x, out=outputs[0])
    return [step(layer, kernel, operands, numbers, items, text, grain=sharing(items, x.shape.size), beside=kernels)]


def _combines_rows(form: Reduction) -> bool:
    """Whether whole rows are combined into one, in each of some groups."""
    is_one_dim = len(form.reduced) == 1 and 1 <= len(form.kept) <= 2
    return is_one_dim and form.kept_strides[-1] == 1 and form.kept[-1] != 1


def _kernels(combine: str, is_whole: bool) -> tuple[str, str]:
    """The kernel that reduces elements, and the one that reduces rows."""
    return ("reduce_whole", "reduce_whole.columns") if is_whole else (f"reduce.{combine}", f"reduce.{combine}_columns")


def _formulas(form: Reduction) -> str:
    """The text of the formulas before and after a reduction of floats."""
    prepare, _ = translate(form.prepare, ["float"], "python")
    finish, _ = translate(form.finish, ["float", "float"], "python")
    return (
        f"{prepare}\n@inline\ndef formula(x):\n    return {form.prepare.__name__}(x)\n"
        f"{finish}\n@inline\ndef epilogue(x, count):\n    return {form.finish.__name__}(x, count)\n"
    )


def _whole(form: Reduction, dtype: DataType) -> str | None:
    """The text of a reduction of integers or truth values; None if no kernel has it."""
    formula = _WHOLE.get(form.combine)
    plain = form.prepare is identity and form.finish in (keep, average)
    is_bool, is_extreme = dtype is DataType.BOOL, form.combine in ("largest", "smallest")
    if formula is None or not plain or (is_bool and not is_extreme) or not (is_bool or dtype in _INTEGERS):
        return None
    kind = DataType.UINT8 if is_bool else dtype  # a truth value is a byte
    if form.finish is average and dtype is not DataType.INT64:
        return None
    start, averages = int(_empty(form.combine, kind.numpy)), form.finish is average
    head = f"dtype, start, averages = {kind.value!r}, {start}, {averages}"
    return f"{head}\n@inline\ndef combine(a, b):\n    return {formula}\n"


_WHOLE = {"sum": "a + b", "product": "a * b", "largest": "a if a > b else b", "smallest": "a if a < b else b"}
_INTEGERS = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.UINT8, DataType.UINT16)
