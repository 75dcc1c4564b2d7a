"""Transposed convolution on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.casting import accumulator
from perframe.backends.cpu.conv import lower_as
from perframe.backends.cpu.program import NativeStep
from perframe.layers.conv import Convolution


def compute(layer: LayerLike, form: Convolution, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Each tap of the window scatters the whole input into the output."""
    x, w, b = (*inputs, None)[:3]
    window, groups, rank = form.window, form.groups, len(form.size)
    full = [
        max((size - 1) * s + (k - 1) * d + 1, begin + out)
        for size, s, k, d, begin, out in zip(
            form.size, window.strides, window.kernel, window.dilations, window.begin, form.output, strict=True
        )
    ]
    per_group = form.outputs // groups
    accumulate = accumulator(x.dtype)
    result = np.zeros((form.batch, groups, per_group, *full), accumulate)
    given = x.astype(accumulate, copy=False).reshape(form.batch, groups, form.channels // groups, *form.size)
    weights = w.astype(accumulate, copy=False).reshape(groups, form.channels // groups, per_group, *window.kernel)
    for tap in itertools.product(*(range(k) for k in window.kernel)):
        cut = tuple(
            slice(t * d, t * d + (size - 1) * s + 1, s)
            for t, d, size, s in zip(tap, window.dilations, form.size, window.strides, strict=True)
        )
        part = np.einsum("ngc...,gco->ngo...", given, weights[(slice(None),) * 3 + tap], optimize=True)
        result[(slice(None),) * 3 + cut] += part
    result = result.reshape(form.batch, form.outputs, *full)
    result = result[
        (slice(None),) * 2 + tuple(slice(a, a + out) for a, out in zip(window.begin, form.output, strict=True))
    ]
    return [result if b is None else result + b.reshape(-1, *(1,) * rank)]


def lower(
    layer: LayerLike, form: Convolution, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """The gathering kernel; float32, one or two spatial dims."""
    return lower_as("conv.transpose", layer, form, inputs, outputs)
