"""Views on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.ir.geometry import View

DTYPES = ALL_DTYPES  # elements are only moved


def dims(form: list[View]) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [view.collapsed().shape for view in form]


def lower(call: Call[list[View]], tools: Tools) -> list[Binding]:
    """A strided copy for each output that has elements."""
    x, form = call.x, call.form
    return [
        call.bind(
            "move",
            {"X": x},
            y,
            {"shape": view.shape, "strides": view.strides, "rank": len(view.shape), "offset": view.offset},
        )
        for view, y in zip((view.collapsed() for view in form), call.outputs, strict=True)
        if math.prod(view.shape)
    ]
