"""Convolution on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.casting import accumulator
from perframe.backends.cpu.lowering import all_float32, epilogue, step
from perframe.backends.cpu.program import NativeStep
from perframe.layers.conv import Convolution
from perframe.tensor import HostStorage


def compute(layer: LayerLike, form: Convolution, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Tap by tap: each is a matrix product of a group's channels."""
    x, w, b = (*inputs, None)[:3]
    window, groups, rank = form.window, form.groups, len(form.size)
    last = [
        (out - 1) * stride + (kernel - 1) * spread + 1
        for out, stride, kernel, spread in zip(
            form.output, window.strides, window.kernel, window.dilations, strict=True
        )
    ]
    widths = [
        (begin, max(0, need - size - begin)) for begin, need, size in zip(window.begin, last, form.size, strict=True)
    ]
    padded = np.pad(x, [(0, 0), (0, 0), *((max(0, a), c) for a, c in widths)])
    padded = padded.reshape(form.batch, groups, form.channels // groups, *padded.shape[2:])
    weights = w.reshape(groups, form.outputs // groups, form.channels // groups, *window.kernel)
    # whole numbers are summed up in float64, which is exact for the small ones that there are, and fast
    accumulate = np.float64 if x.dtype.kind in "iu" else accumulator(x.dtype)
    padded, weights = padded.astype(accumulate, copy=False), weights.astype(accumulate, copy=False)
    result = np.zeros((form.batch, groups, form.outputs // groups, *form.output), accumulate)
    for tap in itertools.product(*(range(k) for k in window.kernel)):
        cut = tuple(
            slice(t * d + max(0, -begin), t * d + max(0, -begin) + (out - 1) * s + 1, s)
            for t, d, out, s, begin in zip(
                tap, window.dilations, form.output, window.strides, window.begin, strict=True
            )
        )
        part = padded[(slice(None),) * 3 + cut]
        result += np.einsum("ngc...,goc->ngo...", part, weights[(slice(None),) * 3 + tap], optimize=True)
    result = result.reshape(form.batch, form.outputs, *form.output)
    if b is not None:
        result = result + b.reshape(-1, *(1,) * rank)
    return [result.astype(np.int64) if x.dtype.kind in "iu" else result]


def numbers_of(form: Convolution) -> list[int] | None:
    """The form as the kernels read it, in two spatial dims; None where there are more."""
    rank = len(form.size)
    if rank > 2:
        return None
    w = form.window
    pairs = [(form.size, 1), (form.output, 1), (w.kernel, 1), (w.strides, 1), (w.dilations, 1), (w.begin, 0)]
    flat = [n for values, missing in pairs for n in (*(missing,) * (2 - rank), *values)]
    return [form.channels, form.outputs, form.groups, *flat]


def lower(
    layer: LayerLike, form: Convolution, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """The direct kernel; float32, one or two spatial dims."""
    return lower_as("conv", layer, form, inputs, outputs)


def lower_as(
    kernel: str, layer: LayerLike, form: Convolution, inputs: Sequence[Operand | None], outputs: Sequence[Operand]
) -> list[NativeStep] | None:
    """The same for the transpose, which differs only in its kernel."""
    x, w, b = (*inputs, None)[:3]
    numbers = numbers_of(form)
    if x is None or w is None or numbers is None or not all_float32(inputs):
        return None
    text, parameters = epilogue(layer)
    if b is None:
        storage = HostStorage((form.outputs,), x.dtype)
        storage.upload(np.zeros(form.outputs, np.float32))
        b = Operand("", (form.outputs,), x.dtype, None, lambda: storage)
    numbers = [parameters.ctypes.data, *numbers]
    return [step(layer, kernel, [x, w, b, outputs[0]], numbers, form.batch * form.outputs, text, [parameters])]
