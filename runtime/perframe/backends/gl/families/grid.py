"""Sampling at the points of grids on GL."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.ir.geometry import in_dims
from perframe.layers.grid import MODES, PADDINGS, AffineMap, Sampling
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # "nearest" only moves elements


def supports(call: Call[Sampling | AffineMap]) -> str | None:
    """Supports up to three dims; integers only in mode "nearest", which does not mix them."""
    form = call.form
    if len(form.size) > 3:
        return f"sampling in {len(form.size)} dims has no GL kernel"
    mixes = isinstance(form, Sampling) and form.mode != "nearest" and call.y.dtype is not DataType.FLOAT32
    return "sampling between integers has no GL kernel" if mixes else None


def lower(call: Call[Sampling | AffineMap], tools: Tools) -> list[Binding]:
    """One kernel for three dims; missing dims have size 1."""
    form = call.form
    params: dict[str, Any] = {"size": in_dims(form.size, 3)}
    if isinstance(form, AffineMap):
        return [call.bind("affine_grid", {"T": call.x}, call.y, {**params, "dims": len(form.size)})]
    chosen = {"MODE": MODES.index(form.mode), "PADDING": PADDINGS.index(form.padding), "DIMS": len(form.size)}
    defines = {name: str(number) for name, number in chosen.items()}
    return [call.bind("grid_sample", {"X": call.x, "G": call.input(1)}, call.y, params, defines)]
