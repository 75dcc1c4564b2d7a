"""Softmax on GL (each row's two numbers first, then every element) and local response normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import RUN, Binding, Tools
from perframe.layers.norm import Neighbours, Softmaxing


def lower(
    layer: LayerLike,
    form: Softmaxing | Neighbours,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """By the form."""
    x = inputs[0]
    assert x is not None
    if isinstance(form, Softmaxing):
        return _softmax(layer, form, x, outputs[0], tools)
    names = ("channels", "inner", "before", "after", "alpha", "beta", "bias")
    params = {name: getattr(form, name) for name in names}
    return [Binding(layer.name, "local_response", {"X": x}, outputs[0], params)]


def _softmax(layer: LayerLike, form: Softmaxing, x: Operand, y: Operand, tools: Tools) -> list[Binding]:
    """Two kernels, the first of them again where the rows are long."""
    rows, size = form.outer * form.inner, form.size
    parts = -(-size // RUN)
    params = {"size": size, "inner": form.inner, "run": -(-size // parts), "parts": parts, "paired": 0}
    numbers = tools.scratch((rows * parts * 2,), x.dtype)
    bindings = [Binding(layer.name, "norm", {"X": x}, numbers, params)]
    while parts > 1:
        size, parts = parts, -(-parts // RUN)
        params = {"size": size, "inner": 1, "run": -(-size // parts), "parts": parts, "paired": 1}
        joined = tools.scratch((rows * parts * 2,), x.dtype)
        bindings.append(Binding(layer.name, "norm", {"X": numbers}, joined, params))
        numbers = joined
    walk = {"size": form.size, "inner": form.inner, "logarithm": int(form.logarithm)}
    return [*bindings, Binding(layer.name, "softmax", {"X": x, "S": numbers}, y, walk)]
