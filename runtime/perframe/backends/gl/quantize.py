"""Quantization on GL: whole numbers of any width are ints there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import SMALL_DTYPES, Binding, Tools
from perframe.layers.quantize import WHOLE_RANGES, Scaling
from perframe.tensor import DataType


def small_dtypes(layer: LayerLike) -> Sequence[DataType]:
    """All of them."""
    return SMALL_DTYPES


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Between float32 and whole numbers, divided in float32."""
    quantizes = layer.op == "QuantizeLinear"
    scale, other = inputs[1], outputs[0] if quantizes else inputs[0]
    assert scale is not None and other is not None
    form: Scaling = layer.form(inputs, outputs)
    if scale.dtype is not DataType.FLOAT32 or form.precision is not DataType.FLOAT32:
        return f"scales of {scale.dtype} and results of {form.precision} have no GL kernel"
    if other.dtype is DataType.FLOAT32 or (not quantizes and outputs[0].dtype is not DataType.FLOAT32):
        return f"{layer.op} of {other.dtype} has no GL kernel"
    return ""


def lower(
    layer: LayerLike,
    form: Scaling,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel, in either direction."""
    x, scale, zero = (*inputs, None)[:3]
    assert x is not None and scale is not None
    params: dict[str, Any] = {
        "size": form.size,
        "inner": form.inner,
        "block": form.block,
        "steps": form.steps,
        "has_zero": int(zero is not None),
        "range": WHOLE_RANGES.get(outputs[0].dtype, (0, 0)),
    }
    scaled = f"{'QUANTIZED' if layer.op == 'QuantizeLinear' else 'DEQUANTIZED'}(value, scale, zero)"
    given = {"X": x, "S": scale, "Z": zero or x}
    return [Binding(layer.name, "quantize", given, outputs[0], params, {"SCALED(value, scale, zero)": scaled})]
