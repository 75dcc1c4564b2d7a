"""Views on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.backends.operand import Operand
from perframe.ir.geometry import View

DTYPES = ALL_DTYPES  # elements are only moved


def dims(form: list[View]) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [view.collapsed().shape for view in form]


def lower(call: Call[list[View]], tools: Tools) -> list[Binding]:
    """A strided copy for each output that has elements."""
    views = zip((view.collapsed() for view in call.form), call.outputs, strict=True)
    return [_binding(call, view, y) for view, y in views if math.prod(view.shape)]


def _binding(call: Call[list[View]], view: View, y: Operand) -> Binding:
    shape, strides, offset, defines = view.shape, view.strides, view.offset, dict[str, str]()
    if strides and strides[-1] == 1 and not any(number % 4 for number in (shape[-1], offset, *strides[:-1])):
        shape, strides = (*shape[:-1], shape[-1] // 4), (*(stride // 4 for stride in strides[:-1]), 1)
        offset, defines = offset // 4, {"WHOLE": "1"}
    params: dict[str, Any] = {"shape": shape, "strides": strides, "rank": len(shape), "offset": offset}
    return call.bind("move", {"X": call.x}, y, params, defines)
