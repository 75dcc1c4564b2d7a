"""Elementwise layers on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import fields
from perframe.backends.cpu.kernels.sizes import MAX_RANK, has_halves
from perframe.backends.cpu.lowering.casting import convert, is_native
from perframe.backends.cpu.lowering.lowering import float_array, sharing, step, strided_copy
from perframe.backends.cpu.lowering.rows import walk
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.broadcasting import Elementwise, Float8Rules
from perframe.ir.epilogue import parameters
from perframe.ir.formula import keywords, name_in_text, translate
from perframe.ir.geometry import row_major
from perframe.ir.sizes.size import at_least, is_symbolic, known_factor
from perframe.ir.vocabulary import abs, is_inf, sqrt, where
from perframe.layers.elementwise import Pow
from perframe.tensor import DataType

CHUNK = 4096  # elements of a long row that one core takes at a time
LEAST = 16  # elements of a row: values with shorter rows may have no gaps
SHORT, LONG = 64, 2048  # rows shorter than SHORT are joined to rows of up to LONG elements


def compute(layer: LayerLike, form: Elementwise, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Call the formula on broadcast arrays."""
    given = [inputs[index] for index in form.operands]
    given = [array if is_native(array.dtype) else array.astype(np.float32) for array in given]  # ml_dtypes as float32
    views = []
    for array, strides in zip(given, form.strides, strict=True):
        flat = np.ascontiguousarray(array).reshape(-1)
        steps = tuple(step * flat.itemsize for step in strides)
        strided = np.lib.stride_tricks.as_strided
        views.append(strided(flat, form.shape, steps) if math.prod(form.shape) else np.empty(form.shape, flat.dtype))
    result = form.formula(*views, **dict(zip(keywords(form.formula), form.parameters, strict=True)))
    wanted = outputs[0].dtype
    if wanted is DataType.STRING:
        return [np.asarray(result).astype(object)]
    result = np.asarray(result)
    if result.dtype != wanted.numpy or any(np.may_share_memory(result, view) for view in views):
        rules = form.conversion or Float8Rules()
        result = convert(result, wanted, rules.saturate, rules.round_mode)
    return [np.broadcast_to(result, form.shape)]


def lower(
    layer: LayerLike,
    form: Elementwise,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Native steps. Each combination of formula, epilogue and dtypes has its own kernel."""
    operands = [value for index, value in enumerate(inputs) if index in form.operands and value is not None]
    if len(operands) > 5 or len(form.shape) > MAX_RANK:
        return None
    formula = _simpler(form, operands)
    if formula is not form.formula:
        operands, form = operands[:1], replace(form, formula=formula, strides=form.strides[:1], kinds=form.kinds[:1])
    written = _written(layer, form, operands, outputs[0])
    if written is None:
        return None
    numbers = float_array((*form.parameters, *parameters(layer.epilogue)))
    first = len(form.parameters)
    names = ", ".join(f"x{k}" for k in range(len(operands)))
    arguments = ", ".join([names, *(f"p[{k}]" for k in range(first))])
    tail = jit.epilogue_text(layer.epilogue, first=first)
    whole = f"{written}\n@inline\ndef formula({names}, p):\n    return {name_in_text(formula)}({arguments})\n{tail}"
    gaps = any([value.has_gaps for value in (*operands, outputs[0])])
    shape, strides, operands, copies = (
        _rows(form, operands, outputs[0]) if gaps else _long_rows(layer, form, operands, scratch)
    )
    inner = shape[-1]
    chunks = at_least(inner // CHUNK, 1)
    chunk, items = -(-inner // chunks), math.prod(shape[:-1]) * chunks
    words = fields.elementwise(len(operands))
    fixed = words.numbers(
        parameters=numbers.ctypes.data,
        rank=len(shape),
        chunks=chunks,
        chunk=chunk,
        pitch=outputs[0].pitch if gaps else inner,
    )
    made = step(
        layer,
        "elementwise",
        words.operands(**{f"x{k}": value for k, value in enumerate(operands)}, out=outputs[0]),
        [*fixed, *shape, *(stride for steps in strides for stride in steps)],
        items,
        whole,
        [numbers],
        grain=sharing(items, math.prod(shape)),
    )
    return [*copies, made]


def _written(layer: LayerLike, form: Elementwise, operands: Sequence[Operand], out: Operand) -> str | None:
    """The formula's text with the dtypes of its kernel; None if no kernel takes these dtypes or agrees with NumPy."""
    dtypes = {value.dtype for value in operands}
    known = dtypes | {out.dtype} <= _FLOATS | _WHOLE | {DataType.BOOL, DataType.FLOAT64}
    if {DataType.FLOAT16, DataType.FLOAT64} <= dtypes | {out.dtype}:  # two roundings
        return None
    if form.conversion is not None:
        # when floats lie outside the range of small integers, NumPy's result depends on its compiler
        narrow = dtypes & {*_FLOATS, DataType.FLOAT64} and out.dtype in _WHOLE - {DataType.INT32, DataType.INT64}
        known = known and not narrow
    else:
        numbers = dtypes - {DataType.BOOL}
        known = known and DataType.FLOAT64 not in dtypes | {out.dtype}
        known = known and (len(numbers) <= 1 or out.dtype not in _WHOLE)  # NumPy would compute in a wider dtype
    if not known or (layer.epilogue and out.dtype is not DataType.FLOAT32):
        return None
    kinds = list(form.kinds)
    text, kind = translate(form.formula, kinds, "python")
    if kind == "float" and out.dtype in _WHOLE and form.conversion is None:
        return None
    if "float" not in kinds:
        if any(word in text for word in ("power(", "<<", ">>", "float32(")):
            return None
        text = f"from perframe.backends.cpu.kernels.whole import *\n{text}"
    described = [f"{value.dtype.value} {kind}" for value, kind in zip(operands, kinds, strict=True)]
    return f"operands, result = {described}, {out.dtype.value!r}\n{text}"


_FLOATS = {DataType.FLOAT32, *([DataType.FLOAT16] if has_halves() else [])}  # the kernels compute in float32
_WHOLE = {
    *(DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64),
    *(DataType.UINT8, DataType.UINT16, DataType.UINT32),  # the kernels compute in int64
}


# --- rows with gaps, and short ones ---


def takes_gaps(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> list[Operand]:
    """The result and the inputs of its shape, if a row is long enough for a separate loop."""
    out = outputs[0]
    if layer.channels_last or not out.shape or out.shape[-1] < LEAST:
        return []
    return [out, *[value for value in inputs if value is not None and value.shape == out.shape]]


def _rows(
    form: Elementwise, operands: Sequence[Operand], out: Operand
) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[Operand], list[NativeStep]]:
    """The shape, strides and operands of a walk row by row. It needs no copies."""
    row = out.shape[-1]
    shape, strides = (*form.shape[:-1], form.shape[-1] // row, row), []
    for operand, steps in zip(operands, form.strides, strict=True):
        found = walk(operand, (*steps[:-1], steps[-1] * row, steps[-1]), shape)
        assert found is not None
        strides.append(found[0])
    return shape, strides, list(operands), []


def _long_rows(
    layer: LayerLike, form: Elementwise, operands: Sequence[Operand], scratch: Scratch
) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[Operand], list[NativeStep]]:
    """The shape, strides and operands of a walk that joins short rows, and the copies that it needs first. The copies
    repeat a row that several short rows share.
    """
    as_it_is = form.shape, list(form.strides), list(operands), list[NativeStep]()
    if len(form.shape) < 2 or is_symbolic(form.shape[-1]) or form.shape[-1] >= SHORT:
        return as_it_is
    *leading, rows, inner = form.shape
    together = max(count for count in range(1, LONG // inner + 1) if known_factor(rows) % count == 0)
    plain = [strides[-2:] in ((inner, 1), (0, 0)) for strides in form.strides]
    size = math.prod(leading) * together * inner
    repeatable = all(ok or steps[-2:] == (0, 1) for ok, steps in zip(plain, form.strides, strict=True))
    if together < 4 or not repeatable or 4 * size > math.prod(form.shape):
        return as_it_is
    made, strides, copies = [], [], []
    for operand, steps, ok in zip(operands, form.strides, plain, strict=True):
        before = steps[:-2]
        if not ok:
            kept = [dim if step else 1 for dim, step in zip(leading, before, strict=True)]
            shape, into = (*kept, together, inner), row_major((*kept, together * inner))
            if operand.is_constant and not any(before):
                whole = operand.derived(f"repeated {together}", _repeated(together))
            else:
                whole = scratch(shape, operand.dtype)
                copies.append(strided_copy(layer, operand, whole, shape, (*before, 0, 1), row_major(shape)))
            before = tuple(a if step else 0 for a, step in zip(into, before, strict=False))
            operand = whole
        made.append(operand)
        strides.append((*before, together * inner, 1) if ok and steps[-1] else (*before, 0, steps[-1]))
    return (*leading, rows // together, together * inner), strides, made, copies


def _repeated(count: int) -> Callable[[Any], Any]:
    return lambda value: np.tile(value.reshape(-1), count)


# --- powers whose exponent is known ---


def _same(x: Any) -> Any:
    return x


def _square(x: Any) -> Any:
    return x * x


def _cube(x: Any) -> Any:
    return x * x * x


def _root(x: Any) -> Any:
    return where(is_inf(x), abs(x), sqrt(x + 0.0))  # agrees with power() for -0 and -inf


_POWERS: dict[float, Callable[[Any], Any]] = {1.0: _same, 2.0: _square, 3.0: _cube, 0.5: _root}


def _simpler(form: Elementwise, operands: Sequence[Operand]) -> Callable[..., Any]:
    """The formula. For a power with a known exponent, a simpler formula of the base alone."""
    if form.formula is not Pow.formula or operands[-1].shape.size != 1 or set(form.kinds) != {"float"}:
        return form.formula
    exponent = operands[-1].value
    return form.formula if exponent is None else _POWERS.get(float(exponent.reshape(-1)[0]), form.formula)
