"""Folding columns into pictures on GL."""

from __future__ import annotations

import math

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools, window_params, wrapped
from perframe.layers.col2im import Folding

DTYPES = ALL_DTYPES  # results that do not fit wrap around


def supports(call: Call[Folding]) -> str | None:
    """Supports up to three dims, and blocks that are small enough for a shader's rounds."""
    form = call.form
    if len(form.size) > 3:
        return f"folding in {len(form.size)} dims has no GL kernel"
    fits = 8 * math.prod(form.window.kernel) <= call.rounds
    return None if fits else f"blocks of {form.window.kernel} are too large for one shader"


def lower(call: Call[Folding], tools: Tools) -> list[Binding]:
    """One kernel."""
    form = call.form
    params = window_params(form.window, 3, size=form.size, columns=form.columns)
    return [call.bind("col2im", {"X": call.x}, call.y, params, {"WRAPPED(x)": wrapped("x", call.y.dtype)})]
