"""Views on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import SMALL_DTYPES, Binding, Tools, ints
from perframe.layers.geometry import View
from perframe.tensor import DataType


def small_dtypes(layer: LayerLike) -> Sequence[DataType]:
    """All of them: they are only moved."""
    return SMALL_DTYPES


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Anything but a mask that nobody can have asked for in inference."""
    return "its mask output has no GL kernel" if layer.declaration.form_of is None else ""


def lower(
    layer: LayerLike,
    form: list[View],
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """A strided copy for each output that has elements."""
    x = inputs[0]
    assert x is not None
    return [
        Binding(
            layer.name,
            "move",
            {"X": x},
            y,
            {"shape": ints(view.shape), "strides": ints(view.strides), "rank": len(view.shape), "offset": view.offset},
        )
        for view, y in zip((view.collapsed() for view in form), outputs, strict=True)
        if math.prod(view.shape)
    ]
