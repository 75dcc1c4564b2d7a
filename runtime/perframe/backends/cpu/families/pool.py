"""Pooling on the CPU."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perframe.backends.cpu.families.quantize import SIGNED
from perframe.backends.cpu.kernels.fields import BYTE_POOL, LINES_POOL, POOL
from perframe.backends.cpu.kernels.sizes import BLOCK
from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.cpu.lowering.gemm import SPLIT_FLOPS
from perframe.backends.cpu.lowering.lowering import (
    all_float32,
    end_words,
    plane_words,
    step,
    window_reach,
    window_words,
    window_z_words,
)
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least, at_most
from perframe.layers.pool import Pooling, Unpooling

NEAR = 8192  # elements that stay in the first cache


def compute(
    layer: LayerLike, form: Pooling | Unpooling, inputs: Sequence[Any], outputs: Sequence[Operand]
) -> list[Any]:
    """Pool tap by tap over the whole output, or put each element back at its index."""
    if isinstance(form, Unpooling):
        return [_unpool(form, inputs[0], inputs[1], outputs[0].shape)]
    x = inputs[0].reshape(form.planes, *form.size)
    return _largest(form, x) if form.kind == "largest" and len(outputs) > 1 else [_pool(form, x)]


def _unpool(form: Unpooling, x: Any, indices: Any, shape: Sequence[int]) -> Any:
    whole = np.zeros(math.prod(form.whole), x.dtype)
    whole[indices.reshape(-1)] = x.reshape(-1)
    if tuple(shape) == form.whole:
        return whole
    y = np.zeros(tuple(shape), x.dtype)
    kept = tuple(slice(0, min(dim, out)) for dim, out in zip(form.whole, shape, strict=True))
    y[kept] = whole.reshape(form.whole)[kept]
    return y


def _pool(form: Pooling, x: Any) -> Any:
    """Combine the elements of each tap, for the windows in which it lies inside the input."""
    w, given = form.window, x.dtype
    if form.kind == "norm":
        x = np.abs(x.astype(accumulator(given))) ** form.p
    starts = _starts(form)
    combine, least = (np.add, 0) if form.kind != "largest" else (np.maximum, _least(given))
    total = np.full((form.planes, *form.output), least, given if form.kind == "largest" else accumulator(given))
    for tap in itertools.product(*map(_taps, starts, w.kernel, w.dilations, form.size)):
        made, read = [slice(None)], [slice(None)]
        for start, offset, spread, stride, size in zip(starts, tap, w.dilations, w.strides, form.size, strict=True):
            at = start + offset * spread
            first, end = np.searchsorted(at, (0, size)).tolist()
            made.append(slice(first, end))
            read.append(slice(int(at[first]), int(at[end - 1]) + 1, stride) if first < end else slice(0))
        part = total[tuple(made)]
        combine(part, x[tuple(read)], out=part)
    if form.kind == "norm":
        return total ** (1 / form.p)
    if form.kind == "average" and form.count_padding:
        sizes = [size + end for size, end in zip(form.size, w.end, strict=True)]
        along = [_reach(*of) for of in zip(starts, w.kernel, w.dilations, sizes, strict=True)]
    else:
        every = zip(starts, w.kernel, w.dilations, form.size, strict=True)
        along = [_reach(*of) - _reach(*of[:-1], 0) for of in every]
    count = functools.reduce(np.multiply.outer, [taps.astype(np.float64) for taps in along])
    if form.kind == "average":
        return (total / count).astype(given)
    return np.where(count == 0, given.type(0), total) if not count.all() else total


def _least(dtype: np.dtype[Any]) -> Any:
    """The number that is never larger than another one."""
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def _starts(form: Pooling) -> list[Any]:
    """The first element that each window takes, along each dim; it may lie in the padding."""
    w = form.window
    return [np.arange(out) * stride - pad for out, stride, pad in zip(form.output, w.strides, w.begin, strict=True)]


def _largest(form: Pooling, x: Any) -> list[Any]:
    """The largest elements, and where they were found."""
    w, starts = form.window, _starts(form)
    total = np.zeros((form.planes, *form.output), x.dtype)
    found = np.full((form.planes, *form.output), -1, np.int64)
    first = np.full((form.planes, *form.output), True)
    for tap in itertools.product(*map(_taps, starts, w.kernel, w.dilations, form.size)):
        at = [start + offset * spread for start, offset, spread in zip(starts, tap, w.dilations, strict=True)]
        here = _all([(a >= 0) & (a < size) for a, size in zip(at, form.size, strict=True)])
        grid = np.ix_(*(np.clip(a, 0, size - 1) for a, size in zip(at, form.size, strict=True)))
        values = x[(slice(None), *grid)]
        index = sum(g * s for g, s in zip(grid, form.index_strides, strict=True))
        better = here & (first | (values > total) | (values != values))
        total, found = np.where(better, values, total), np.where(better, index, found)
        first = first & ~here
    plane = np.arange(form.planes).reshape(-1, *(1,) * len(form.size)) * int(np.prod(form.size))
    return [total, found + plane]


def _reach(starts: Any, kernel: int, dilation: int, size: int) -> Any:
    """The number of taps before the end of `size` elements, for windows with these starts."""
    return np.clip(-((starts - size) // dilation), 0, kernel)


def _taps(starts: Any, kernel: int, dilation: int, size: int) -> Any:
    """The taps that lie inside the input for any of the windows: these may be far larger than their input."""
    first, last = _reach(starts, kernel, dilation, 0), _reach(starts, kernel, dilation, size)
    found = [np.arange(a, b) for a, b in zip(first, last, strict=True)]
    return sorted(set(np.concatenate(found).tolist()))  # NumPy's unique imports its masked arrays: 50 ms


def _all(along: Sequence[Any]) -> Any:
    """Combine conditions along all axes: an element of the result holds if all of its conditions hold."""
    return functools.reduce(np.logical_and, np.meshgrid(*along, indexing="ij", sparse=True))


def lower(
    layer: LayerLike,
    form: Pooling | Unpooling,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """float32, up to three spatial dims, no indices; the largest of bytes where the channels are last."""
    x = inputs[0]
    if not isinstance(form, Pooling) or form.kind == "norm" or len(outputs) > 1 or x is None or not x.shape.size:
        return None
    if x.dtype in SIGNED and layer.channels_last and form.kind == "largest":
        return [_of_bytes(layer, form, x, outputs[0])] if len(form.size) < 3 else None
    form = _merged(form, 3 if layer.channels_last else 1)
    if not all_float32([x]) or len(form.size) > 3:
        return None
    return _channels_last(layer, form, x, outputs[0]) if layer.channels_last else _of_planes(layer, form, x, outputs[0])


def _merged(form: Pooling, most: int) -> Pooling:
    """An equal pool with as few dims as possible. While it has more dims than `most`, a first dim along which the
    window does not reach makes more planes.
    """
    window, size, output = form.window.merged(form.size, form.output)
    planes = form.planes
    while len(size) > most and window.rests(0):
        planes, window, size, output = planes * size[0], window.from_axis(1), size[1:], output[1:]
    return replace(form, window=window, planes=planes, size=size, output=output)


def _of_planes(layer: LayerLike, form: Pooling, x: Operand, out: Operand) -> list[NativeStep] | None:
    """The step; None if the taps of a line are too many for the stack."""
    window = plane_words(form.window, form.size, form.output)
    window_z = window_z_words(form.window, form.size, form.output)
    width, out_height, out_width = window["width"], window["out_height"], window["out_width"]
    whole, reach = form.window.in_dims(3), window_reach(window)[1]
    in_place = whole.kernel[:2] == (1, 1) and not any((*whole.begin[:2], *whole.end[:2]))
    if not in_place and reach > BLOCK and width > BLOCK:
        return None
    columns = out_width
    if not in_place:
        columns = at_most(out_width, at_least((BLOCK - reach) // window["stride_x"] + 1, 1))
    span = at_most(width, (columns - 1) * window["stride_x"] + reach)
    lines = at_most(out_height, at_least(NEAR // at_least(span, 1), 1))
    line_items, column_items = -(-out_height // lines), -(-out_width // columns)
    numbers = POOL.numbers(
        counts_padding=int(form.count_padding),
        **window,
        **window_z,
        **end_words(form.window),
        in_place=int(in_place),
        line_block=lines,
        column_block=columns,
        line_items=line_items,
        column_items=column_items,
    )
    items = form.planes * window_z["out_z"] * line_items * column_items
    work = lines * span * (window_z["kernel_z"] * window["kernel_y"] + window["kernel_x"])
    grain, operands = SPLIT_FLOPS // 4 // at_least(work, 1), POOL.operands(x=x, out=out)
    return [step(layer, f"pool.{form.kind}", operands, numbers, items, grain=grain)]


def takes_gaps(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> list[Operand]:
    """Data and result where the channels are last."""
    x = inputs[0]
    if x is None or not layer.channels_last or len(x.shape) > 5 or len(outputs) > 1 or not all_float32([x]):
        return []
    form = layer.form(inputs, outputs)
    return [x, *outputs] if isinstance(form, Pooling) and form.kind != "norm" else []


def _channels_last(layer: LayerLike, form: Pooling, x: Operand, out: Operand) -> list[NativeStep]:
    window = plane_words(form.window, form.size, form.output)
    window_z = window_z_words(form.window, form.size, form.output)
    channels = out.shape[-1]
    numbers = LINES_POOL.numbers(
        counts_padding=int(form.count_padding),
        **window,
        **window_z,
        **end_words(form.window),
        channels=channels,
        x_pitch=x.pitch,
        out_pitch=out.pitch,
        x_offset=0,
        out_offset=0,
    )
    grain = SPLIT_FLOPS // 4 // at_least(_row_work(window, channels) * window_z["kernel_z"], 1)
    items = math.prod(out.shape[:-1]) // at_least(window["out_width"], 1)
    return [step(layer, f"depthwise.{form.kind}", LINES_POOL.operands(x=x, out=out), numbers, items, grain=grain)]


def _row_work(window: Mapping[str, int], channels: int) -> int:
    """The number of elements that the windows of an output row read."""
    return at_least(window["out_width"] * window["kernel_y"] * window["kernel_x"] * channels, 1)


def _of_bytes(layer: LayerLike, form: Pooling, x: Operand, out: Operand) -> NativeStep:
    window = window_words(form.window, form.size, form.output)
    assert window is not None
    batch, channels = out.shape[0], out.shape[-1]
    numbers, text = BYTE_POOL.numbers(**window, channels=channels), f"signed = {SIGNED[x.dtype]}"
    grain, items = SPLIT_FLOPS // 8 // _row_work(window, channels), batch * window["out_height"]
    return step(layer, "byte_pool.largest", BYTE_POOL.operands(x=x, out=out), numbers, items, text, grain=grain)
