"""Pooling of regions on GL."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.lowering.steps import Binding, Call, Tools, passes
from perframe.layers.roi_pool import Cells


def supports(call: Call[Cells]) -> str | None:
    """Supports pictures whose rows fit a shader's rounds."""
    columns = call.form.size[1]
    return None if columns < _at_once(call) else f"rows of {columns} elements are too long for one shader"


def _at_once(call: Call[Cells]) -> int:
    """The number of elements of a picture that one pass reads."""
    return call.rounds // 4


def lower(call: Call[Cells], tools: Tools) -> list[Binding]:
    """Each pass reads some rows of the picture, because one cell may cover all of it."""
    form, y, found, bindings = call.form, call.y, call.x, list[Binding]()
    rows, columns = form.size
    for first, count in passes(rows, _at_once(call) // (columns + 1)):
        last = first + count
        target = y if last == rows else tools.scratch(y.shape, y.dtype)
        params: dict[str, Any] = {"output_": form.output, "first": first, "last": last}
        given = {"X": call.x, "R": call.input(1), "F": found}
        bindings.append(call.bind("roi_pool", given, target, params))
        found = target
    return bindings
