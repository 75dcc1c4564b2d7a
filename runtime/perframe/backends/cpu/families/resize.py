"""Resampling on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import RESIZE
from perframe.backends.cpu.lowering.lowering import SPLIT_ELEMENTS, all_float32, step
from perframe.backends.cpu.program.program import NativeStep, Table
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.resize import AxisTaps, Sampling
from perframe.layers.resize import taps as taps_of
from perframe.sizes.traced import at_least


def compute(layer: LayerLike, form: list[AxisTaps], inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Resample axis by axis, in float64."""
    result = inputs[0]
    whole = result.dtype.kind in "biu"
    for one in form:
        planes = result.reshape(one.outer, one.size, one.inner)
        if one.count == 1 and one.weights.all():
            result = planes[:, one.indices[:, 0]]
            continue
        taken = planes[:, one.indices.reshape(-1)].reshape(one.outer, *one.indices.shape, one.inner)
        result = np.einsum("omki,mk->omi", taken.astype(np.float64), one.weights.astype(np.float64))
    return [np.rint(result).astype(inputs[0].dtype) if whole and result.dtype.kind == "f" else result]


def lower(
    layer: LayerLike,
    form: list[AxisTaps],
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Native steps for float32, one for each axis."""
    x = inputs[0]
    if x is None or not form or not all_float32([x]) or not x.shape.size:
        return None
    steps = []
    for index, one in enumerate(form):
        taps, work = one.count, one.output * one.outer * one.inner * one.count
        y = outputs[0] if index == len(form) - 1 else scratch((one.outer, one.output, one.inner), x.dtype)
        sizes = (one.sampling, one.size, one.output)
        tables = RESIZE.tables(indices=Table(_indices, sizes), weights=Table(_weights, sizes))
        numbers = RESIZE.numbers(size=one.size, inner=one.inner, outputs=one.output, taps=taps)
        operands, items = RESIZE.operands(x=x, out=y), one.outer * one.output
        grain = items * SPLIT_ELEMENTS // at_least(work, 1)
        steps.append(step(layer, "resize", operands, numbers, items, tables=tables, grain=grain))
        x = y
    return steps


def _indices(how: Sampling, size: int, output: int) -> Any:
    return np.ascontiguousarray(taps_of(how, size, output)[0], np.int64)


def _weights(how: Sampling, size: int, output: int) -> Any:
    return np.ascontiguousarray(taps_of(how, size, output)[1], np.float32)
