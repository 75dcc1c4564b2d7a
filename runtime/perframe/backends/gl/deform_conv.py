"""Deformable convolution on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import ROUNDS, Binding, Tools
from perframe.layers.deform_conv import Deformed
from perframe.tensor import DataType


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Pictures of float32."""
    form: Deformed = layer.form(inputs, outputs)
    conv = form.convolution
    if len(conv.size) != 2 or outputs[0].dtype is not DataType.FLOAT32:
        return "deformable convolution has a GL kernel for pictures of float32 alone"
    rounds = 4 * math.prod(conv.window.kernel) * (conv.channels // conv.groups + 1)
    return "" if rounds <= ROUNDS else f"{rounds} samples for one element are too many for one shader"


def lower(
    layer: LayerLike,
    form: Deformed,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    x, w, offset, b, mask = (*inputs, None, None)[:5]
    assert x is not None and w is not None and offset is not None
    conv = form.convolution
    params: dict[str, Any] = {
        "size": conv.size,
        "output_": conv.output,
        "kernel": conv.window.kernel,
        "stride": conv.window.strides,
        "dilation": conv.window.dilations,
        "begin": conv.window.begin,
        "channels": conv.channels,
        "outputs": conv.outputs,
        "depth": conv.channels // conv.groups,
        "shares": form.offset_groups,
        "has_bias": int(b is not None),
        "has_mask": int(mask is not None),
    }
    given = {"X": x, "W": w, "D": offset, "B": b or w, "M": mask or w}
    return [Binding(layer.name, "deform_conv", given, outputs[0], params)]
