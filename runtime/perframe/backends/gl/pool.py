"""Pooling on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import ROUNDS, Binding, Tools
from perframe.layers.geometry import row_major
from perframe.layers.pool import Pooling
from perframe.tensor import DataType

_KINDS = {"largest": 0, "average": 1, "norm": 2}


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Up to three spatial dims."""
    form = layer.form(inputs, outputs)
    if not isinstance(form, Pooling):
        return f"{layer.op} has no GL kernel"
    if len(form.size) > 3:
        return "pooling over more than three dims has no GL kernel"
    if outputs[0].dtype is not DataType.FLOAT32:
        return f"pooling {outputs[0].dtype} has no GL kernel"
    return (
        ""
        if 8 * math.prod(form.window.kernel) <= ROUNDS
        else f"a window of {form.window.kernel} is too large for one shader"
    )


def padded(values: Sequence[int], missing: int, length: int) -> list[int]:
    """Fewer spatial dims as so many."""
    return [*(missing,) * (length - len(values)), *values]


def two(values: Sequence[int], missing: int) -> list[int]:
    """One spatial dim as two."""
    return padded(values, missing, 2)


def lower(
    layer: LayerLike,
    form: Pooling,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel an output."""
    x = inputs[0]
    assert x is not None
    places = row_major(form.size)
    if layer.attributes.get("storage_order"):
        places = row_major(form.size[::-1])[::-1]
    general = {**_numbers(form, 3), "places": padded(places, 0, 3)}
    if len(form.size) <= 2:
        bindings = [Binding(layer.name, "pool", {"X": x}, outputs[0], _numbers(form, 2))]
    else:
        bindings = [Binding(layer.name, "pool_any", {"X": x}, outputs[0], general)]
    indices = [Binding(layer.name, "pool_any", {"X": x}, y, general, {"INDEX": "1"}) for y in outputs[1:]]
    return bindings + indices


def _numbers(form: Pooling, length: int) -> dict[str, Any]:
    w = form.window
    return {
        "size": padded(form.size, 1, length),
        "output_": padded(form.output, 1, length),
        "kernel": padded(w.kernel, 1, length),
        "stride": padded(w.strides, 1, length),
        "dilation": padded(w.dilations, 1, length),
        "begin": padded(w.begin, 0, length),
        "end": padded(w.end, 0, length),
        "kind": _KINDS[form.kind],
        "p": form.p,
        "count_padding": int(form.count_padding),
    }
