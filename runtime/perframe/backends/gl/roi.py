"""Regions of pictures on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import ROUNDS, Binding, Tools
from perframe.layers.roi import Regions
from perframe.tensor import DataType

_SIDE = math.isqrt(ROUNDS // 4 // 2)  # samples a side that one element takes in


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """float32, and no more samples than a shader has rounds for, even for a region twice the picture's size."""
    if outputs[0].dtype is not DataType.FLOAT32:
        return "regions of whole numbers have no GL kernel"
    form: Regions = layer.form(inputs, outputs)
    most = form.samples or max(
        math.ceil(2 * size / output) for size, output in zip(form.size, form.output, strict=True)
    )
    return "" if most <= _SIDE else f"{most} samples a side of an element are too many for one shader"


def lower(
    layer: LayerLike,
    form: Regions,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    x, rois, pictures = inputs
    assert x is not None and rois is not None and pictures is not None
    params: dict[str, Any] = {
        "size": form.size,
        "output_": form.output,
        "channels": form.channels,
        "columns": rois.shape[1],
        "samples": form.samples,
        "most": _SIDE,
        "half_pixel": int(form.half_pixel),
        "largest": int(form.mode == "max"),
        "scale": form.scale,
    }
    return [Binding(layer.name, "roi", {"X": x, "R": rois, "I": pictures}, outputs[0], params)]
