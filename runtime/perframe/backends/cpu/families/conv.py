"""Convolution on the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import BATCH_STEPS, CONV, DEPTHWISE
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.lowering import gemm, winograd
from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.cpu.lowering.gemm import SPLIT_FLOPS
from perframe.backends.cpu.lowering.lowering import (
    all_float32,
    epilogue,
    plane_words,
    step,
    window_words,
    window_z_words,
)
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least, specialized
from perframe.layers.conv import Convolution

ADDEND = 3  # the input that is added
MOST_SEEN = 1 << 20  # elements that are copied for one of NumPy's products, if a row has no more


def compute(layer: LayerLike, form: Convolution, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Products of a group's weights and the windows of a few rows of pixels at a time."""
    x, w, b, addend, factor = inputs
    x = x if factor is None else x * factor
    # integers are summed in float64, which is fast, and exact for numbers of this size
    accumulate = np.float64 if x.dtype.kind in "iu" else accumulator(x.dtype)
    data, weights = x.astype(accumulate, copy=False), w.astype(accumulate, copy=False)
    # the taps come before the channels then, in the weights too: to turn these pays if many pixels share them
    pays = math.prod(form.output) >= 4 * form.outputs or math.prod(form.window.kernel) == 1
    by_pixels = layer.channels_last and form.groups == 1 and pays
    result = _by_pixels(form, data, weights) if by_pixels else _by_channels(form, data, weights)
    if b is not None:
        result = result + b.reshape(-1, *(1,) * len(form.size))
    if addend is not None:
        result[:, : addend.shape[1]] += addend
    return [result.astype(np.int64) if x.dtype.kind in "iu" else result]


def _by_channels(form: Convolution, x: Any, weights: Any) -> Any:
    """A row of products for each channel of the result."""
    rank, groups = len(form.size), form.groups
    weights = weights.reshape(groups, form.outputs // groups, math.prod(weights.shape[1:]))
    result = np.empty((form.batch, groups, form.outputs // groups, *form.output), x.dtype)
    if result.size:
        seen = _windows(form, x)
        seen = seen.reshape(form.batch, groups, form.depth, *seen.shape[2:])
        for some in _rows(form):
            of_rows, made = seen[(slice(None),) * (3 + rank) + (some,)], result[:, :, :, some]
            columns = of_rows.reshape(form.batch, groups, weights.shape[-1], math.prod(made.shape[3:]))
            made[:] = np.matmul(weights, columns).reshape(made.shape)
    return result.reshape(form.batch, form.outputs, *form.output)


def _by_pixels(form: Convolution, x: Any, weights: Any) -> Any:
    """A row of products for each pixel, for data in which a pixel's channels are neighbors."""
    rank = len(form.size)
    weights = weights.reshape(form.outputs, form.depth, -1).transpose(2, 1, 0).reshape(-1, form.outputs)
    result = np.empty((form.batch, *form.output, form.outputs), x.dtype)
    if result.size:
        seen = np.moveaxis(_windows(form, np.moveaxis(x, 1, -1), -1), range(1, 2 + rank), range(-1 - rank, 0))
        seen = np.moveaxis(seen, -1 - rank, -1)  # (batch, *output, *kernel, channels)
        for some in _rows(form):
            made = result[:, some]
            made[:] = (seen[:, some].reshape(-1, len(weights)) @ weights).reshape(made.shape)
    return np.moveaxis(result, -1, 1)


def _windows(form: Convolution, x: Any, channels: int = 1) -> Any:
    """The input that each tap sees, as a view (batch, channels, *kernel, *output). `channels` is their axis in `x`."""
    window, rank = form.window, len(form.size)
    spans = [(kernel - 1) * spread + 1 for kernel, spread in zip(window.kernel, window.dilations, strict=True)]
    last = [(out - 1) * stride + span for out, stride, span in zip(form.output, window.strides, spans, strict=True)]
    widths = [
        (max(0, begin), max(0, need - size - begin))
        for begin, need, size in zip(window.begin, last, form.size, strict=True)
    ]
    if any(map(any, widths)):
        widths.insert(0 if channels == 1 else rank, (0, 0))
        x = np.pad(x, [(0, 0), *widths])
    cut = tuple(slice(max(0, -begin), None) for begin in window.begin)
    seen: Any = sliding_window_view(np.moveaxis(x, channels, 1)[(..., *cut)], spans, axis=tuple(range(2, 2 + rank)))
    pixels = [slice(0, (out - 1) * step + 1, step) for out, step in zip(form.output, window.strides, strict=True)]
    seen = seen[(..., *pixels, *(slice(None, None, spread) for spread in window.dilations))]
    return np.moveaxis(seen, range(2 + rank, 2 + 2 * rank), range(2, 2 + rank))


def _rows(form: Convolution) -> Iterator[slice]:
    """Rows of the result whose windows are copied at a time."""
    copied = form.batch * form.groups * form.depth * math.prod((*form.window.kernel, *form.output[1:]))
    rows = max(1, MOST_SEEN // max(1, copied))
    return (slice(first, first + rows) for first in range(0, form.output[0], rows))


def lower(
    layer: LayerLike, form: Convolution, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """float32, up to three spatial dims. Channels that are last make products over packed weights."""
    if layer.channels_last:
        return _channels_last(layer, _merged(form), inputs, outputs[0], scratch)
    rows = form.batch * form.outputs * math.prod(form.output[:-1])
    return lower_as("conv", layer, form, inputs, outputs, rows)


def lower_rounded(
    layer: LayerLike, form: Convolution, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Products of bfloat16, where channels are last and weights are constant."""
    if not layer.channels_last or inputs[-1] is not None:
        return None
    return _channels_last(layer, _merged(form), inputs, outputs[0], scratch, rounds=True)


def _merged(form: Convolution) -> Convolution:
    """An equal convolution over as few dims as possible, for data with the channels last."""
    window, size, output = form.window.merged(form.size, form.output)
    batch = form.batch
    if len(size) > 2 and window.rests(0):
        batch, window, size, output = batch * size[0], window.from_axis(1), size[1:], output[1:]
    if len(size) > 2:
        window, size, output = window.joined_at_end(size, output)
    return replace(form, window=window, batch=batch, size=size, output=output)


def _channels_last(
    layer: LayerLike,
    form: Convolution,
    inputs: Sequence[Operand | None],
    out: Operand,
    scratch: Scratch,
    rounds: bool = False,
) -> list[NativeStep] | None:
    x, w, b, addend, factor = inputs
    if x is None or w is None or not w.is_constant or len(form.size) > 3 or not all_float32(inputs):
        return None
    window = plane_words(form.window, form.size, form.output)
    if b is None:
        b = Operand.stored(np.zeros(specialized(form.outputs), np.float32))
    groups, depth, outputs = form.groups, form.depth, form.outputs // form.groups
    if depth == outputs == 1 and groups > 1 and addend is None and factor is None:
        by_tap = w.derived("taps", _by_tap)
        return [depthwise(layer, form, window, x, by_tap, b, out)]
    taps = math.prod(form.window.kernel)
    if not rounds and winograd.pays(form):
        points = w.derived("points", winograd.panels_of(form))
        return [winograd.convolve(layer, form, (x, points, b), addend, out, scratch)]
    if not rounds and winograd.may_take(form):
        jit.kernel("winograd")

    images, seen = gemm.images_of(form, window)
    product = gemm.Multiplication(
        images=images,
        columns=outputs,
        x_pitch=x.pitch,
        out_pitch=out.pitch,
        addend_pitch=out.pitch if addend is None else addend.pitch,
        window=seen,
        channels=depth,
        batch=(groups,),
        steps=BATCH_STEPS.operands(
            x=(depth,),
            weights=(taps * depth * gemm.padded(outputs),),
            bias=(outputs,),
            out=(outputs,),
            addend=(outputs,),
        ),
        addend_columns=0 if addend is None or groups > 1 else addend.shape[-1],
        window_z=window_z_words(form.window, form.size, form.output),
    )
    columns_of = partial(gemm.matrices_of, groups=specialized(groups))
    if rounds:
        from perframe.backends.cpu.lowering import bfloat_product  # late: few workers round

        if not bfloat_product.suits(product):
            return None
        return bfloat_product.multiply(layer, product, x, (w, "panels", columns_of), b, addend, out, scratch)
    made = gemm.panels_of(columns_of, specialized(groups), specialized(taps * depth), specialized(outputs))
    panels, steps_before = w.derived("panels", made), []
    if factor is not None:
        scaled = scratch(panels.shape, x.dtype)
        steps_before, panels = [gemm.scale_step(layer, panels, factor, scaled, depth, outputs)], scaled
    return [*steps_before, gemm.multiply(layer, product, x, panels, b, addend, out)]


def _by_tap(weights: Any) -> Any:
    """Weights of a depthwise convolution as (taps, channels), with at least a whole vector of channels."""
    by_tap = weights.reshape(len(weights), -1).T
    return np.pad(by_tap, ((0, 0), (0, max(0, LANES - len(weights)))))


def takes_gaps(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> list[Operand]:
    """Data, addend and result, if the channels are last."""
    x, w, _, addend, _ = inputs
    if not layer.channels_last or w is None or not w.is_constant or len(w.shape) > 5 or not all_float32(inputs):
        return []
    return [value for value in (x, addend, outputs[0]) if value is not None]


def overwrites(layer: LayerLike) -> int | None:
    """The addend, if the channels are last: each tile of the result reads its own part of it before it writes."""
    return ADDEND if layer.channels_last else None


def depthwise(
    layer: LayerLike,
    form: Convolution,
    window: Mapping[str, int],
    x: Operand,
    by_tap: Operand,
    bias: Operand,
    out: Operand,
) -> NativeStep:
    """Return the step that convolves each channel by itself."""
    ends, keep = gemm.finishing(layer)
    window_z = window_z_words(form.window, form.size, form.output)
    rows = form.batch * window_z["out_z"] * window["out_height"]
    row_flops = 2 * window["out_width"] * math.prod(form.window.kernel) * form.channels
    operands = DEPTHWISE.operands(x=x, weights=by_tap, bias=bias, out=out)
    numbers = DEPTHWISE.numbers(
        **ends,
        **window,
        **window_z,
        channels=form.channels,
        x_pitch=x.pitch,
        out_pitch=out.pitch,
        x_offset=0,
        out_offset=0,
    )
    grain = SPLIT_FLOPS // 4 // at_least(row_flops, 1)
    return step(layer, "depthwise", operands, numbers, rows, keep=keep, grain=grain)


def lower_as(
    kernel: str,
    layer: LayerLike,
    form: Convolution,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    items: int,
) -> list[NativeStep] | None:
    """Return the step of a kernel with the words of CONV, or None if the kernel does not take these operands."""
    x, w, b, *others = inputs
    window = window_words(form.window, form.size, form.output)
    if x is None or w is None or window is None or not all_float32(inputs) or layer.channels_last or any(others):
        return None
    text, parameters = epilogue(layer)
    if b is None:
        b = Operand.stored(np.zeros(specialized(form.outputs), np.float32))
    operands = CONV.operands(x=x, weights=w, bias=b, out=outputs[0])
    sizes = {"channels": form.channels, "outputs": form.outputs, "groups": form.groups}
    numbers = CONV.numbers(parameters=parameters.ctypes.data, **sizes, **window)
    grain = items * SPLIT_FLOPS // at_least(8 * form.operations, 1)  # these kernels are slower than products
    return [step(layer, kernel, operands, numbers, items, text, [parameters], grain=grain)]
