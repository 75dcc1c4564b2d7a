"""Views on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.backends.gl.lowering.whole import has_whole_rows, is_fixed
from perframe.backends.operand import Operand
from perframe.ir.geometry import View

DTYPES = ALL_DTYPES  # elements are only moved


def dims(form: list[View]) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [view.collapsed().shape for view in form]


def lower(call: Call[list[View]], tools: Tools) -> list[Binding]:
    """A strided copy for each output that has elements."""
    given, fixed = call.layer.inputs[0], is_fixed(call.layer)
    made = []
    for view, y, value in zip(call.form, call.outputs, call.layer.outputs, strict=True):
        if math.prod(view.shape):
            in_rows = fixed or has_whole_rows(value)
            whole = in_rows and (fixed or has_whole_rows(given))
            made.append(_binding(call, view.collapsed(), y, in_rows, whole))
    return made


def _binding(call: Call[list[View]], view: View, y: Operand, in_rows: bool, whole: bool) -> Binding:
    """Four elements may lie in one row, and be a texel of it, in all runs alike."""
    shape, strides, offset, defines = view.shape, view.strides, view.offset, dict[str, str]()
    if in_rows and shape and shape[-1] % 4 == 0:
        defines = {"ROWS": "1"}
        if whole and strides[-1] == 1 and not any(number % 4 for number in (offset, *strides[:-1])):
            shape, strides = (*shape[:-1], shape[-1] // 4), (*(stride // 4 for stride in strides[:-1]), 1)
            offset, defines = offset // 4, {"WHOLE": "1"}
    params: dict[str, Any] = {"shape": shape, "strides": strides, "rank": len(shape), "offset": offset}
    return call.bind("move", {"X": call.x}, y, params, defines)
