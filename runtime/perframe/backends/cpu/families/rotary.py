"""Rotary embeddings on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import ROTARY
from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.cpu.lowering.lowering import all_float32, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.rotary import PairRotation


def compute(layer: LayerLike, form: PairRotation, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Multiply the numbers by the cosines, and the other numbers of their pairs by the sines."""
    x, cos, sin = (value.astype(accumulator(value.dtype), copy=False) for value in inputs)
    half = x.shape[-1] // 2
    pairs = x.reshape(*x.shape[:-1], *((half, 2) if form.interleaved else (2, half)))
    axis = -1 if form.interleaved else -2
    first, second = (np.take(pairs, index, axis) for index in (0, 1))
    turned = np.stack([-second, first], axis).reshape(x.shape)
    if form.by_pair:
        cos, sin = (np.repeat(t, 2, -1) if form.interleaved else np.concatenate([t, t], -1) for t in (cos, sin))
    return [x * cos + turned * sin]


def lower(
    layer: LayerLike, form: PairRotation, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """One step for float32."""
    if not all_float32([*inputs, outputs[0]]) or layer.epilogue:
        return None
    x, cos, sin = (value for value in inputs if value is not None)
    numbers = ROTARY.numbers(
        size=form.size, interleaved=int(form.interleaved), by_pair=int(form.by_pair), rank=len(form.shape)
    )
    numbers += [*form.shape, *form.cos_steps, *form.sin_steps]
    operands = ROTARY.operands(x=x, cos=cos, sin=sin, out=outputs[0])
    grain = sharing(form.rows, 2 * x.shape.size)  # it reads two tables
    return [step(layer, "rotary", operands, numbers, form.rows, grain=grain)]
