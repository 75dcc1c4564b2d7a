"""Sampling at the points of grids on GL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import Binding, Tools
from perframe.layers.grid import MODES, PADDINGS, AffineMap, Sampling
from perframe.tensor import DataType


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Up to three dims; whole numbers only where none are mixed."""
    form: Sampling | AffineMap = layer.form(inputs, outputs)
    if len(form.size) > 3:
        return f"sampling in {len(form.size)} dims has no GL kernel"
    mixes = isinstance(form, Sampling) and form.mode != "nearest" and outputs[0].dtype is not DataType.FLOAT32
    return "between whole numbers nothing is sampled on GL" if mixes else ""


def lower(
    layer: LayerLike,
    form: Sampling | AffineMap,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel; it counts three dims, the missing ones of size 1."""
    first, second = inputs[0], inputs[1]
    assert first is not None and second is not None
    dims = len(form.size)
    params: dict[str, Any] = {"size": (*(1,) * (3 - dims), *form.size), "dims": dims, "align": int(form.align_corners)}
    if isinstance(form, AffineMap):
        return [Binding(layer.name, "affine_grid", {"T": first}, outputs[0], params)]
    params |= {
        "channels": form.channels,
        "points": form.points,
        "mode": MODES.index(form.mode),
        "padding": PADDINGS.index(form.padding),
    }
    return [Binding(layer.name, "grid_sample", {"X": first, "G": second}, outputs[0], params)]
