"""Folding columns into pictures on GL."""

from __future__ import annotations

import math
from typing import Any

from perframe.backends.gl.families.pool import padded
from perframe.backends.gl.steps import ALL_DTYPES, ROUNDS, Binding, Call, Tools, wrapped
from perframe.layers.col2im import Folding

DTYPES = ALL_DTYPES  # results that do not fit wrap around


def supports(call: Call[Folding]) -> str | None:
    """Supports up to three dims, and blocks that are small enough for a shader's rounds."""
    form = call.form
    if len(form.size) > 3:
        return f"folding in {len(form.size)} dims has no GL kernel"
    fits = 8 * math.prod(form.window.kernel) <= ROUNDS
    return None if fits else f"blocks of {form.window.kernel} are too large for one shader"


def lower(call: Call[Folding], tools: Tools) -> list[Binding]:
    """One kernel."""
    form, w = call.form, call.form.window
    params: dict[str, Any] = {
        "size": padded(form.size, 1, 3),
        "columns": padded(form.columns, 1, 3),
        "kernel": padded(w.kernel, 1, 3),
        "stride": padded(w.strides, 1, 3),
        "dilation": padded(w.dilations, 1, 3),
        "begin": padded(w.begin, 0, 3),
    }
    return [call.bind("col2im", {"X": call.x}, call.y, params, {"WRAPPED(x)": wrapped("x", call.y.dtype)})]
