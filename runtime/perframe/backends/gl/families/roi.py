"""Regions of pictures on GL."""

from __future__ import annotations

import math
from typing import Any

from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.layers.roi import Regions
from perframe.tensor import DataType


def supports(call: Call[Regions]) -> str | None:
    """Supports float32, and samples that fit a shader's rounds even for a region twice the picture's size."""
    if call.y.dtype is not DataType.FLOAT32:
        return "regions of integers have no GL kernel"
    form = call.form
    most = form.samples or max(
        math.ceil(2 * size / output) for size, output in zip(form.size, form.output, strict=True)
    )
    return None if most <= _side(call) else f"{most} samples a side of an element are too many for one shader"


def _side(call: Call[Regions]) -> int:
    """The most samples of one element along each side."""
    return math.isqrt(call.rounds // 4 // 2)


def lower(call: Call[Regions], tools: Tools) -> list[Binding]:
    """One kernel."""
    form, x, rois, pictures = call.form, call.x, call.input(1), call.input(2)
    params: dict[str, Any] = {
        "output_": form.output,
        "columns": rois.shape[1],
        "most": _side(call),
        "largest": form.mode == "max",
    }
    return [call.bind("roi", {"X": x, "R": rois, "I": pictures}, call.y, params)]
