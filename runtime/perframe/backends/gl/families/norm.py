"""Softmax on GL (each row's two numbers first, then every element) and local response normalisation."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.steps import RUN, Binding, Call, Tools
from perframe.backends.operand import Operand
from perframe.layers.norm import Neighbours, Softmaxing


def lower(call: Call[Softmaxing | Neighbours], tools: Tools) -> list[Binding]:
    """The kernels of the form: softmax or local response normalisation."""
    x, form = call.x, call.form
    if isinstance(form, Softmaxing):
        return _softmax(call, form, x, call.y, tools)
    return [call.bind("local_response", {"X": x}, call.y)]


def _softmax(call: Call[Any], form: Softmaxing, x: Operand, y: Operand, tools: Tools) -> list[Binding]:
    """Two kernels. If rows are long, the first one runs again on its own results."""
    rows, size = form.outer * form.inner, form.size
    parts = -(-size // RUN)
    params = {"run": -(-size // parts), "parts": parts, "paired": 0}
    numbers = tools.scratch((rows * parts * 2,), x.dtype)
    bindings = [call.bind("norm", {"X": x}, numbers, params)]
    while parts > 1:
        size, parts = parts, -(-parts // RUN)
        params = {"size": size, "inner": 1, "run": -(-size // parts), "parts": parts, "paired": 1}
        joined = tools.scratch((rows * parts * 2,), x.dtype)
        bindings.append(call.bind("norm", {"X": numbers}, joined, params))
        numbers = joined
    return [*bindings, call.bind("softmax", {"X": x, "S": numbers}, y)]
