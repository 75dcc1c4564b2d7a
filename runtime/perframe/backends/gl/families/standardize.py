"""Normalizations by mean and variance on GL: each row's moments first, then every element."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.backends.gl.lowering.together import pairs
from perframe.layers.standardize import Standardization
from perframe.tensor import DataType


def supports(call: Call[Standardization]) -> str | None:
    """Supports computation in float32, with scales and biases that repeat along x."""
    form = call.form
    if form.stash is DataType.FLOAT64:
        return "computing in float64 has no GL kernel"
    if any(form.period(index) is None for index in range(len(form.factors))):
        return f"scales and biases of {form.factors} have no GL kernel"
    return None


def lower(call: Call[Standardization], tools: Tools) -> list[Binding]:
    """Kernels that compute the moments of parts and join them, and then one kernel for each output."""
    form, x, scale, bias = call.form, call.x, call.input(1), call.optional(2)
    moments, bindings = pairs(call, "moments", form.rows, form.size, 1, tools, total=form.size)
    shift = form.period(1) if len(form.factors) > 1 else None
    params: dict[str, Any] = {
        "scale": form.period(0) or (1, 1),
        "shift": shift or (1, 1),
        "biased": bias is not None,
    }
    given = {"X": x, "S": moments, "W": scale, "B": bias or scale}
    for kind, y in enumerate(call.outputs):
        bindings.append(call.bind("standardize", given, y, params | {"kind": kind}))
    return bindings
