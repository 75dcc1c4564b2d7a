"""Softmax on GL: each row's two numbers first, then every element."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import RUN, Binding, Tools
from perframe.layers.norm import Softmaxing


def lower(
    layer: LayerLike,
    form: Softmaxing,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """Two kernels; three where the rows are long."""
    x = inputs[0]
    assert x is not None
    rows, walk = form.outer * form.inner, {"size": form.size, "inner": form.inner}
    parts = -(-form.size // RUN)
    numbers = tools.scratch((rows * parts * 2,), x.dtype)
    run = {"run": -(-form.size // parts), "parts": parts}
    bindings = [Binding(layer.name, "norm", {"X": x}, numbers, {**walk, **run})]
    if parts > 1:
        joined = tools.scratch((rows * 2,), x.dtype)
        bindings.append(Binding(layer.name, "norm_join", {"S": numbers}, joined, {"parts": parts}))
        numbers = joined
    last = Binding(
        layer.name, "softmax", {"X": x, "S": numbers}, outputs[0], {**walk, "logarithm": int(form.logarithm)}
    )
    return [*bindings, last]
