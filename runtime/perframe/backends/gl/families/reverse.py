"""Reversing sequences on GL."""

from __future__ import annotations

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.layers.reverse import Reversal

DTYPES = ALL_DTYPES  # elements are only moved


def lower(call: Call[Reversal], tools: Tools) -> list[Binding]:
    """One kernel."""
    return [call.bind("reverse", {"X": call.x, "L": call.input(1)}, call.y)]
