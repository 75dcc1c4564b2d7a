"""Quantization on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import EXTENT, OWN_RANGE, QUANTIZE, QUANTIZE_COLUMNS
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.lowering.casting import convert
from perframe.backends.cpu.lowering.lowering import SPLIT_ELEMENTS, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least
from perframe.layers.quantize import WHOLE_RANGES, OwnRange, Scaling
from perframe.tensor import DataType

CHUNK = 8192  # elements that one core takes at a time
SIGNED = {DataType.UINT8: False, DataType.INT8: True}


def compute(layer: LayerLike, form: Scaling | OwnRange, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute on (outer, size, inner)."""
    if isinstance(form, OwnRange):
        return _own_range(inputs[0])
    x, scale, zero = inputs
    rows = x.reshape(form.outer, form.size, form.inner)
    offset = None if zero is None else _spread(form, zero)
    scaled = _quantize if form.quantizes else _dequantize
    return [scaled(form, rows, _spread(form, scale), offset, outputs[0])]


def _own_range(x: Any) -> list[Any]:
    """If all elements are zero, the scale is 1/255, as in ONNX's evaluator; the standard's own function gives 0."""
    low, high = x.min(initial=np.float32(0)), x.max(initial=np.float32(0))
    scale = (high - low or np.float32(1)) / np.float32(255)
    zero = np.rint(np.clip(-(low / scale), 0, 255))
    return [np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), scale, zero.astype(np.uint8)]


def lower(
    layer: LayerLike,
    form: Scaling | OwnRange,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Native steps between bytes and float32, with a scale for the tensor or for each index of an axis."""
    x, *others = inputs
    assert x is not None
    elements = x.shape.size
    if isinstance(form, OwnRange):
        chunks = -(-elements // CHUNK)
        pairs = scratch((2 * chunks * LANES,), DataType.FLOAT32)
        y = outputs[0]  # unread outputs may be absent
        own = outputs[1] if len(outputs) > 1 else scratch((1,), DataType.FLOAT32)
        own_zero = outputs[2] if len(outputs) > 2 else scratch((1,), DataType.UINT8)
        grain = max(1, SPLIT_ELEMENTS // CHUNK)
        numbers = EXTENT.numbers(elements=elements, chunk=CHUNK)
        own_range = OWN_RANGE.operands(pairs=pairs, scale=own, zero=own_zero)
        return [
            step(layer, "quantize.extent", EXTENT.operands(x=x, pairs=pairs), numbers, chunks, grain=grain),
            step(layer, "quantize.own_range", own_range, OWN_RANGE.numbers(chunks=chunks), 1),
            _scale(layer, "quantize", QUANTIZE.operands(x=x, scale=own, zero=own_zero, out=y), False),
        ]
    small, large = (outputs[0], x) if form.quantizes else (x, outputs[0])
    scale, zero = others
    if scale is None or form.block != 1 or small.dtype not in SIGNED or form.steps not in ((0, 0, 0), (0, 1, 0)):
        return None
    if {large.dtype, scale.dtype, form.precision} != {DataType.FLOAT32}:
        return None
    zero = zero or Operand.stored(np.zeros(scale.shape.size, small.dtype.numpy))
    kernel = "quantize" if form.quantizes else "dequantize"
    operands = QUANTIZE.operands(x=x, scale=scale, zero=zero, out=outputs[0])
    if any(form.steps) and form.inner == 1:
        text, grain = f"signed = {SIGNED[small.dtype]}", sharing(form.outer, elements)
        numbers = QUANTIZE_COLUMNS.numbers(size=form.size)
        return [step(layer, f"quantize.{kernel}_columns", operands, numbers, form.outer, text, grain=grain)]
    size = form.size if any(form.steps) else 1
    return [_scale(layer, kernel, operands, SIGNED[small.dtype], form.outer * size, size)]


def _scale(
    layer: LayerLike, kernel: str, operands: Sequence[Operand], signed: bool, rows: int = 1, size: int = 1
) -> NativeStep:
    """The step for rows, each with the next of `size` scales."""
    elements = operands[0].shape.size
    inner = elements // at_least(rows, 1)
    chunks = -(-inner // CHUNK)
    items = rows * chunks
    numbers = QUANTIZE.numbers(inner=inner, size=size, chunks=chunks, chunk=CHUNK)
    text, grain = f"signed = {signed}", sharing(items, elements)
    return step(layer, f"quantize.{kernel}", operands, numbers, items, text, grain=grain)


def _spread(form: Scaling, values: Any) -> Any:
    """The scale or zero point of each element, in a shape that broadcasts to (outer, size, inner)."""
    extents = (form.outer, form.size, form.inner)
    parts = [np.arange(extent if step else 1) for extent, step in zip(extents, form.steps, strict=True)]
    at = (
        parts[0][:, None, None] * form.steps[0]
        + (parts[1] // form.block)[None, :, None] * form.steps[1]
        + parts[2][None, None, :] * form.steps[2]
    )
    return values.reshape(-1)[at]


def _quantize(form: Scaling, x: Any, scale: Any, zero: Any, output: Operand) -> Any:
    """Divide in the form's precision, and round halves to even."""
    dtype = form.precision.numpy
    quotient = (x.astype(dtype) / scale.astype(dtype)).astype(np.float64)
    if output.dtype not in WHOLE_RANGES:
        return convert(quotient if zero is None else quotient + zero.astype(np.float64), output.dtype, form.saturate)
    whole = np.rint(quotient)
    if zero is not None:
        whole = whole + zero.astype(np.float64)
    low, high = WHOLE_RANGES[output.dtype]
    return np.clip(np.nan_to_num(whole, nan=low), low, high).astype(np.int32).astype(output.dtype.numpy)


def _dequantize(form: Scaling, x: Any, scale: Any, zero: Any, output: Operand) -> Any:
    """Multiply in float32 or wider. Subtract zero points of wide integers in float64, which is exact."""
    wide = np.float64 if x.dtype.kind in "iu" and x.dtype.itemsize > 2 else np.float32
    values = x.astype(wide)
    if zero is not None:
        values = values - zero.astype(wide)
    result = values.astype(np.float32) * scale.astype(np.promote_types(np.float32, _known(scale.dtype)))
    return result.astype(output.dtype.numpy)


def _known(dtype: Any) -> Any:
    return dtype if dtype == np.float64 else np.dtype(np.float32)
