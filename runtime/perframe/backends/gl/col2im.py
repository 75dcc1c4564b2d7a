"""Folding columns into pictures on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.pool import padded
from perframe.backends.gl.steps import ROUNDS, Binding, Tools
from perframe.layers.col2im import Folding


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Up to three dims, in blocks that a shader has rounds for."""
    form: Folding = layer.form(inputs, outputs)
    if len(form.size) > 3:
        return f"folding in {len(form.size)} dims has no GL kernel"
    fits = 8 * math.prod(form.window.kernel) <= ROUNDS
    return "" if fits else f"blocks of {form.window.kernel} are too large for one shader"


def lower(
    layer: LayerLike,
    form: Folding,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    x, w = inputs[0], form.window
    assert x is not None
    params: dict[str, Any] = {
        "size": padded(form.size, 1, 3),
        "columns": padded(form.columns, 1, 3),
        "kernel": padded(w.kernel, 1, 3),
        "stride": padded(w.strides, 1, 3),
        "dilation": padded(w.dilations, 1, 3),
        "begin": padded(w.begin, 0, 3),
    }
    return [Binding(layer.name, "col2im", {"X": x}, outputs[0], params)]
