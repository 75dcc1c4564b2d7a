"""Softmax on GL (each row's two numbers first, then every element) and local response normalization."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.backends.gl.lowering.together import pairs
from perframe.backends.operand import Operand
from perframe.layers.norm import Neighbours, Softmaxing


def lower(call: Call[Softmaxing | Neighbours], tools: Tools) -> list[Binding]:
    """The kernels of the form: softmax or local response normalization."""
    x, form = call.x, call.form
    if isinstance(form, Softmaxing):
        return _softmax(call, form, x, call.y, tools)
    return [call.bind("local_response", {"X": x}, call.y)]


def _softmax(call: Call[Any], form: Softmaxing, x: Operand, y: Operand, tools: Tools) -> list[Binding]:
    rows = form.outer * form.inner
    numbers, bindings = pairs(call, "norm", rows, form.size, form.inner, tools)
    return [*bindings, call.bind("softmax", {"X": x, "S": numbers}, y, {"rows": rows})]
