"""Quantization on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.backends.cpu.casting import convert
from perframe.layers.quantize import WHOLE_RANGES, Scaling


def compute(layer: LayerLike, form: Scaling, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """On (outer, size, inner)."""
    x, scale, zero = (*inputs, None)[:3]
    rows = x.reshape(form.outer, form.size, form.inner)
    offset = None if zero is None else _spread(form, zero)
    scaled = _quantize if form.quantizes else _dequantize
    return [scaled(form, rows, _spread(form, scale), offset, outputs[0])]


def _spread(form: Scaling, values: Any) -> Any:
    """The values that elements are scaled by, as (outer, size, inner) or so that it broadcasts."""
    extents = (form.outer, form.size, form.inner)
    parts = [np.arange(extent if step else 1) for extent, step in zip(extents, form.steps, strict=True)]
    at = (
        parts[0][:, None, None] * form.steps[0]
        + (parts[1] // form.block)[None, :, None] * form.steps[1]
        + parts[2][None, None, :] * form.steps[2]
    )
    return values.reshape(-1)[at]


def _quantize(form: Scaling, x: Any, scale: Any, zero: Any, output: Operand) -> Any:
    """Division in the precision asked for; halves are rounded to even."""
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
    """In float32 at least, and exactly where the dtype is wide."""
    wide = np.float64 if x.dtype.kind in "iu" and x.dtype.itemsize > 2 else np.float32
    values = x.astype(wide)
    if zero is not None:
        values = values - zero.astype(wide)
    result = values.astype(np.float32) * scale.astype(np.promote_types(np.float32, _known(scale.dtype)))
    return result.astype(output.dtype.numpy)


def _known(dtype: Any) -> Any:
    return dtype if dtype == np.float64 else np.dtype(np.float32)
