"""Normalizations by mean and variance on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import STANDARDIZE
from perframe.backends.cpu.lowering.lowering import all_float32, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.standardize import Standardization
from perframe.tensor import DataType


def compute(layer: LayerLike, form: Standardization, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute in float64 if the layer or its output asks for it, else in float32."""
    wide = np.float64 if DataType.FLOAT64 in (form.stash, outputs[0].dtype) else np.float32
    x = inputs[0].astype(wide).reshape(form.rows, form.size)
    mean = x.mean(1, keepdims=True) if form.centered else np.zeros((form.rows, 1), wide)
    centered = x - mean
    inverse = 1 / np.sqrt((centered * centered).mean(1, keepdims=True) + wide(form.epsilon))
    y = (centered * inverse).reshape(form.view)
    factors = [
        None if shape is None else value.astype(wide).reshape(shape)
        for shape, value in zip(form.factors, inputs[1:], strict=True)
    ]
    scale, bias = (*factors, None)[:2]
    y = y if scale is None else y * scale
    y = y if bias is None else y + bias
    return [y, mean, inverse]


def lower(
    layer: LayerLike,
    form: Standardization,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Native steps for float32 rows and a single output."""
    x, scale, bias = (*inputs, None)[:3]  # a layer with no mean has no bias
    periods = [form.period(index) for index in range(len(form.factors))]
    if x is None or scale is None or not all_float32([*inputs, outputs[0]]) or any(p is None for p in periods):
        return None
    if len(outputs) > 1 or form.stash is not DataType.FLOAT32 or not form.size:
        return None
    (scale_inner, scale_count), (bias_inner, bias_count) = (*(p for p in periods if p), (1, 1))[:2]
    epsilon = np.array([form.epsilon], np.float32)
    numbers = STANDARDIZE.numbers(
        epsilon=epsilon.ctypes.data,
        size=form.size,
        is_centered=int(form.centered),
        has_bias=int(bias is not None),
        scale_inner=scale_inner,
        scale_count=scale_count,
        bias_inner=bias_inner,
        bias_count=bias_count,
    )
    operands = STANDARDIZE.operands(x=x, scale=scale, bias=bias or scale, out=outputs[0])
    grain = sharing(form.rows, 4 * form.rows * form.size)  # a row is walked four times
    return [step(layer, "standardize.rows", operands, numbers, form.rows, keep=[epsilon], grain=grain)]
