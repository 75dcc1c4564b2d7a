"""Resampling on GL: a pass for each axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import Binding, Tools
from perframe.layers.resize import AxisTaps
from perframe.tensor import DataType


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """float32."""
    return "" if outputs[0].dtype is DataType.FLOAT32 else "resampling integers has no GL kernel"


def lower(
    layer: LayerLike,
    form: list[AxisTaps],
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel an axis; where no axis changes, one that copies."""
    x = inputs[0]
    assert x is not None
    passes = form or [AxisTaps(0, 1, 1, x.shape.size, np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32))]
    bindings = []
    for index, one in enumerate(passes):
        outputs_, taps = one.indices.shape
        y = outputs[0] if index == len(passes) - 1 else tools.scratch((one.outer, outputs_, one.inner), x.dtype)
        given = {"X": x, "I": tools.constant(one.indices), "W": tools.constant(one.weights)}
        params = {"size": one.size, "inner": one.inner, "outputs": outputs_, "taps": taps}
        bindings.append(Binding(layer.name, "resize", given, y, params))
        x = y
    return bindings
