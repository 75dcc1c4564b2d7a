"""Padding on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import PAD
from perframe.backends.cpu.kernels.sizes import PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP
from perframe.backends.cpu.lowering.lowering import mover, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least, at_most
from perframe.layers.pad import Padding


def compute(layer: LayerLike, form: Padding, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Cut where pads are negative, then pad with NumPy."""
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
    """A native step that goes row by row."""
    x = inputs[0]
    if x is None or not form.input_shape or not x.shape.size:
        return None
    kernel = mover("pad", x)
    sizes = zip(form.before, form.input_shape, form.output_shape, strict=True)
    cuts = any(before < 0 or before + size > out for before, size, out in sizes)
    if kernel is None or (cuts and form.mode != "constant"):  # other modes repeat elements of the cut input
        return None
    value = np.array([form.value]).astype(x.dtype.numpy)
    given, made, before = _merged(form)
    first = at_most(at_least(before[-1], 0), made[-1])
    size = at_least(at_most(given[-1] + before[-1], made[-1]) - first, 0)
    items = math.prod(made[:-1])
    fixed = {"value": value.ctypes.data, "mode": _MODES[form.mode], "rank": len(made)}
    numbers = [*PAD.numbers(**fixed, before=first, size=size), *made, *given, *before]
    operands, grain = PAD.operands(x=x, out=outputs[0]), sharing(items, math.prod(made))
    return [step(layer, kernel, operands, numbers, items, keep=[value], grain=grain)]


_MODES = {"constant": PAD_CONSTANT, "edge": PAD_EDGE, "reflect": PAD_REFLECT, "wrap": PAD_WRAP}


def _merged(form: Padding) -> tuple[list[int], list[int], list[int]]:
    """(input shape, output shape, before), with dims merged: a dim without padding joins the dim before it, if that one
    has no padding either or a constant one.
    """
    given, made, before = [form.input_shape[0]], [form.output_shape[0]], [form.before[0]]
    for size, out, pad in zip(form.input_shape[1:], form.output_shape[1:], form.before[1:], strict=True):
        plain = form.mode == "constant" or (before[-1] == 0 and given[-1] == made[-1])
        if size == out and pad == 0 and plain:
            given[-1], made[-1], before[-1] = given[-1] * size, made[-1] * size, before[-1] * size
        else:
            given.append(size)
            made.append(out)
            before.append(pad)
    return given, made, before
