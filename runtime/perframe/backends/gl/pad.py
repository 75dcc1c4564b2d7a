"""Padding on GL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import SMALL_DTYPES, Binding, Tools, ints, kind_of
from perframe.layers.move import Padding
from perframe.tensor import DataType

_MODES = {"constant": 0, "reflect": 1, "edge": 2, "wrap": 3}


def small_dtypes(layer: LayerLike) -> Sequence[DataType]:
    """All of them: they are only moved."""
    return SMALL_DTYPES


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Values that the GPU can hold."""
    form: Padding = layer.form(inputs, outputs)
    fits = kind_of(outputs[0].dtype) == "float" or abs(form.value) <= 2**31 - 1
    return "" if fits else f"the value {form.value} lies outside int32"


def lower(
    layer: LayerLike,
    form: Padding,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel for all modes."""
    x = inputs[0]
    assert x is not None
    params: dict[str, Any] = {
        "size": ints(form.input_shape),
        "shape": ints(form.output_shape),
        "before": ints(form.before),
        "rank": len(form.before),
        "mode": _MODES[form.mode],
        "value": form.value,
    }
    return [Binding(layer.name, "pad", {"X": x}, outputs[0], params)]
