"""Pooling on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import ROUNDS, Binding, Tools
from perframe.layers.pool import Pooling


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Values, in one or two spatial dims."""
    if len(outputs) > 1:
        return "MaxPool's indices have no GL kernel"
    if len(outputs[0].shape) > 4:
        return "pooling over more than two dims has no GL kernel"
    form: Pooling = layer.form(inputs, outputs)
    return (
        ""
        if 8 * math.prod(form.window.kernel) <= ROUNDS
        else f"a window of {form.window.kernel} is too large for one shader"
    )


def two(values: Sequence[int], missing: int) -> list[int]:
    """One spatial dim as two."""
    return [missing, *values] if len(values) == 1 else list(values)


def lower(
    layer: LayerLike,
    form: Pooling,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    x, w = inputs[0], form.window
    assert x is not None
    params: dict[str, Any] = {
        "size": two(form.size, 1),
        "output_": two(form.output, 1),
        "kernel": two(w.kernel, 1),
        "stride": two(w.strides, 1),
        "dilation": two(w.dilations, 1),
        "begin": two(w.begin, 0),
        "end": two(w.end, 0),
        "average": int(form.kind == "average"),
        "count_padding": int(form.count_padding),
    }
    return [Binding(layer.name, "pool", {"X": x}, outputs[0], params)]
