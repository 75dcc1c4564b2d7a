"""Deformable convolution on GL."""

from __future__ import annotations

import math
from typing import Any

from perframe.backends.gl.lowering.steps import Binding, Call, Tools, window_params
from perframe.layers.deform_conv import Deformed
from perframe.tensor import DataType


def supports(call: Call[Deformed]) -> str | None:
    """Supports two spatial dims, in float32."""
    form = call.form
    conv = form.convolution
    if len(conv.size) != 2 or call.y.dtype is not DataType.FLOAT32:
        return "deformable convolution has a GL kernel only for two spatial dims in float32"
    rounds = 4 * math.prod(conv.window.kernel) * (conv.depth + 1)
    return None if rounds <= call.rounds else f"{rounds} samples for one element are too many for one shader"


def lower(call: Call[Deformed], tools: Tools) -> list[Binding]:
    """One kernel."""
    x, w, offset, b, mask = call.x, call.input(1), call.input(2), call.optional(3), call.optional(4)
    conv = call.form.convolution
    params: dict[str, Any] = {
        **window_params(conv.window, 2, size=conv.size, output_=conv.output),
        "channels": conv.channels,
        "outputs": conv.outputs,
        "depth": conv.depth,
        "has_bias": b is not None,
        "has_mask": mask is not None,
    }
    given = {"X": x, "W": w, "D": offset, "B": b or w, "M": mask or w}
    return [call.bind("deform_conv", given, call.y, params)]
