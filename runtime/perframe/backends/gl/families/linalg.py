"""Determinants on GL: Gaussian elimination, a launch for each column."""

from __future__ import annotations

import numpy as np

from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.ir.sizes.size import specialized
from perframe.layers.linalg import Determinants

_LARGEST = 128  # each element of each step searches for the pivot: size ** 4 reads in all


def supports(call: Call[Determinants]) -> str | None:
    """Supports matrices of a modest size."""
    size = call.form.size
    return None if size <= _LARGEST else f"matrices of {size} rows have no GL kernel"


def lower(call: Call[Determinants], tools: Tools) -> list[Binding]:
    """Each step makes matrices that are a row and a column smaller, and puts the product of the pivots before each."""
    form, x, bindings = call.form, call.x, list[Binding]()
    if not form.size:
        return [call.copy(tools.constant(np.ones(1, np.float32)), call.y, step=0)]
    for size in range(specialized(form.size), 0, -1):
        y = call.y if size == 1 else tools.scratch((form.count, (size - 1) ** 2 + 1), x.dtype)
        bindings.append(call.bind("linalg", {"X": x}, y, {"size": size, "fresh": not bindings}))
        x = y
    return bindings
