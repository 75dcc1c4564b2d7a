"""Softmax on GL: each row's two numbers first, then every element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.gl.steps import Binding
from perframe.layers.norm import Softmaxing


def lower(
    layer: LayerLike,
    form: Softmaxing,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
    constant: Callable[[Any], Operand],
) -> list[Binding]:
    """Two kernels."""
    x = inputs[0]
    assert x is not None
    rows = scratch((form.outer * form.inner * 2,), x.dtype)
    walk = {"size": form.size, "inner": form.inner}
    return [
        Binding(layer.name, "norm", {"X": x}, rows, walk),
        Binding(layer.name, "softmax", {"X": x, "S": rows}, outputs[0], {**walk, "logarithm": int(form.logarithm)}),
    ]
