"""Padding on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.lowering import four_bytes, step
from perframe.backends.cpu.program import NativeStep
from perframe.layers.move import Padding


def compute(layer: LayerLike, form: Padding, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Positive pads by NumPy's own pad; negative ones cut."""
    result = inputs[0]
    for axis, before in enumerate(form.before):
        after = form.output_shape[axis] - form.input_shape[axis] - before
        result = result[(slice(None),) * axis + (slice(max(0, -before), result.shape[axis] - max(0, -after)),)]
    widths = [
        (max(0, before), max(0, out - size - before))
        for before, out, size in zip(form.before, form.output_shape, form.input_shape, strict=True)
    ]
    if form.mode == "constant":
        return [np.pad(result, widths, constant_values=np.asarray(form.value).astype(result.dtype))]
    return [np.pad(result, widths, mode=form.mode)]  # type: ignore[call-overload]


def lower(
    layer: LayerLike, form: Padding, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Constant padding, and cutting."""
    x = inputs[0]
    if x is None or form.mode != "constant" or not four_bytes(x) or not form.input_shape or not x.shape.size:
        return None
    value = np.array([form.value]).astype(x.dtype.numpy)
    numbers = [value.ctypes.data, len(form.before), *form.input_shape, *form.output_shape, *form.before]
    return [step(layer, "pad", [x, outputs[0]], numbers, math.prod(form.output_shape[:-1]), keep=[value])]
