"""Transposed convolution on the CPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.families import conv
from perframe.backends.cpu.kernels.fields import BATCH_STEPS
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.cpu.lowering.lowering import all_float32, window_words
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.geometry import SlidingWindow
from perframe.ir.sizes.size import specialized
from perframe.layers.conv import Convolution
from perframe.safety.records import dataclass


def compute(layer: LayerLike, form: Convolution, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Each tap of the window scatters the whole input into the output."""
    x, w, b = inputs
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
    given = x.astype(accumulate, copy=False).reshape(form.batch, groups, form.depth, *form.size)
    weights = w.astype(accumulate, copy=False).reshape(groups, form.depth, per_group, *window.kernel)
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
    """float32, one or two spatial dims. If the channels are last, each phase of the output is a convolution. Otherwise
    a kernel gathers.
    """
    if not layer.channels_last:
        return conv.lower_as("conv.transpose", layer, form, inputs, outputs, form.batch * form.outputs)
    x, w, b = inputs
    window = window_words(form.window, form.size, form.output)
    if x is None or w is None or not w.is_constant or window is None or not all_float32(inputs) or inputs[3:]:
        return None
    if b is None:
        b = Operand.stored(np.zeros(specialized(form.outputs), np.float32))
    height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window.values()
    groups, depth, outputs_ = form.groups, form.depth, form.outputs // form.groups
    down = [_phase(r, out_height, ky, sy, dy, py) for r in range(min(sy, out_height))]
    across = [_phase(r, out_width, kx, sx, dx, px) for r in range(min(sx, out_width))]
    if not all(phase.taps for phase in (*down, *across)):
        return None  # pixels that no tap reaches
    wide, pitch = 1, outputs[0].pitch
    if (
        b.is_constant
        and not outputs[0].has_gaps
        and kx == sx
        and groups == dx == 1
        and px == 0
        and out_width == width * sx
    ):
        # each input pixel makes a run of output pixels: they are columns of one product
        wide, across = sx, [_Phase(0, width, (0,), 1, 0)]
        b = b.derived("repeated", lambda value: np.tile(value, wide))
    steps = []
    for v, h in itertools.product(down, across):
        taps = [(i, j) for i in v.taps for j in h.taps]

        def packed(value: Any, taps: list[tuple[int, int]] = taps) -> Any:
            flat = value.reshape(groups, depth, outputs_, ky, kx)
            if wide > 1:
                matrices = np.stack([flat[..., i, :].swapaxes(-1, -2) for i, _ in taps], 1)
            else:
                matrices = np.stack([flat[..., i, j] for i, j in taps], 1)
            return gemm.pack(matrices.reshape(groups, len(taps) * depth, wide * outputs_))

        phase = SlidingWindow(
            kernel=(len(v.taps), len(h.taps)),
            strides=(1, 1),
            dilations=(v.dilation, h.dilation),
            begin=(v.pad, h.pad),
            end=(0, 0),
        )
        seen = window_words(phase, (height, width), (v.size, h.size))
        assert seen is not None
        product = gemm.Multiplication(
            images=form.batch,
            columns=wide * outputs_,
            x_pitch=x.pitch,
            out_pitch=sx * pitch,
            addend_pitch=0,
            window=seen,
            channels=depth,
            batch=(groups,),
            steps=BATCH_STEPS.operands(
                x=(depth,),
                weights=(len(taps) * depth * gemm.padded(wide * outputs_),),
                bias=(outputs_,),
                out=(outputs_,),
                addend=(0,),
            ),
            out_offset=(v.first * out_width + h.first) * pitch,
            out_line=sy * out_width * pitch,
            out_image=out_height * out_width * pitch,
        )
        panels = w.derived(f"panels of taps {taps} {wide}", packed)
        steps.append(gemm.multiply(layer, product, x, panels, b, None, outputs[0]))
    return steps


def takes_gaps(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> list[Operand]:
    """Data and result, if the channels are last."""
    return conv.takes_gaps(layer, [*inputs, None, None], outputs)


@dataclass(frozen=True)
class _Phase:
    """Every `stride`th output element from `first` on, as a convolution with stride 1: its taps, in its order."""

    first: int
    size: int
    taps: tuple[int, ...]
    dilation: int
    pad: int


def _phase(first: int, size: int, kernel: int, stride: int, dilation: int, pad: int) -> _Phase:
    # output `first + stride * t` takes tap i from input t + (first + pad - i * dilation) / stride
    taps = [i for i in reversed(range(kernel)) if (first + pad - i * dilation) % stride == 0]
    before = -((first + pad - taps[0] * dilation) // stride) if taps else 0
    return _Phase(first, -(-(size - first) // stride), tuple(taps), dilation // math.gcd(stride, dilation), before)
