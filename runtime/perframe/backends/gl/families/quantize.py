"""Quantization on GL, where integers of any width are ints."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.layers.quantize import WHOLE_RANGES, Scaling
from perframe.tensor import DataType

DTYPES = ALL_DTYPES


def supports(call: Call[Scaling]) -> str | None:
    """Supports scaling between float32 and integers that is computed in float32."""
    form, scale = call.form, call.input(1)
    other = call.y if form.quantizes else call.x
    if scale.dtype is not DataType.FLOAT32 or form.precision is not DataType.FLOAT32:
        return f"scales of {scale.dtype} and results of {form.precision} have no GL kernel"
    if other.dtype is DataType.FLOAT32 or (not form.quantizes and call.y.dtype is not DataType.FLOAT32):
        return f"scaling {other.dtype} to {call.y.dtype} has no GL kernel"
    return None


def lower(call: Call[Scaling], tools: Tools) -> list[Binding]:
    """One kernel, in either direction."""
    form, x, zero = call.form, call.x, call.optional(2)
    params: dict[str, Any] = {"has_zero": zero is not None, "range": WHOLE_RANGES.get(call.y.dtype, (0, 0))}
    scaled = f"{'QUANTIZED' if form.quantizes else 'DEQUANTIZED'}(value, scale, zero)"
    given = {"X": x, "S": call.input(1), "Z": zero or x}
    defines = {"SCALED(value, scale, zero)": scaled} | ({} if any(form.steps) else {"OF_TENSOR": "1"})
    return [call.bind("quantize", given, call.y, params, defines)]
