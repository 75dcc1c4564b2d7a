"""Regions of pictures on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from perframe.backends.cpu.kernels.fields import GATHER_ERROR, ROI
from perframe.backends.cpu.kernels.sizes import BLOCK, NOT_FINITE
from perframe.backends.cpu.lowering.lowering import all_float32, float_array, sharing, step, strided_copy
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.errors import BackendError, InputError
from perframe.ir.geometry import row_major
from perframe.layers.roi import Regions
from perframe.tensor import DataType
from perframe.tensor.checks import too_large

wrong = GATHER_ERROR.at
MOST_SAMPLES = 64  # of an element's side, for the kernel


def compute(layer: LayerLike, form: Regions, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Sample and pool region by region (He et al., "Mask R-CNN", 2017)."""
    x, rois, pictures = inputs
    wide = np.float64 if x.dtype == np.float64 else np.float32
    result = np.zeros((form.count, form.channels, *form.output), wide)
    for index, (roi, picture) in enumerate(zip(rois.astype(wide), pictures.reshape(-1), strict=True)):
        edges = roi[:4] * wide(form.scale) - wide(0.5 if form.half_pixel else 0.0)
        if not np.isfinite(edges).all():
            raise InputError(f"region {index} is {roi.tolist()}, and its numbers must be finite")
        axes = [_axis(form, axis, edges[1 - axis], edges[3 - axis]) for axis in (0, 1)]
        taps = [size for axis in axes for size in (axis.output, axis.seen)]
        reason = too_large((form.channels, *taps), DataType.of(np.dtype(wide)))
        if reason:
            raise InputError(f"the samples of a region, {reason}")
        if all(taps):
            result[index] = _pooled(form, x[int(picture)].astype(wide), [(_coordinates(a), a.samples) for a in axes])
    return [result]


def lower(
    layer: LayerLike, form: Regions, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Native steps for float32. They move the channels to the end, and back."""
    x, regions, pictures = inputs
    if x is None or regions is None or pictures is None or not all_float32([x, regions]) or not x.shape.size:
        return None
    if pictures.dtype is not DataType.INT64 or form.samples > MOST_SAMPLES or layer.epilogue:
        return None
    if max(form.size) > BLOCK // 2:  # the weights of an axis do not fit into the stack's block
        return None
    area, elements = math.prod(form.size), math.prod(form.output)
    last = scratch((form.pictures, area, form.channels), x.dtype)
    made = scratch((form.count, elements, form.channels), x.dtype)
    scale, error = float_array([form.scale]), np.zeros(len(GATHER_ERROR.at), np.int64)
    numbers = ROI.numbers(
        scale=scale.ctypes.data,
        error=error.ctypes.data,
        count=form.pictures,
        channels=form.channels,
        height=form.size[0],
        width=form.size[1],
        out_height=form.output[0],
        out_width=form.output[1],
        samples=form.samples,
        is_half_pixel=int(form.half_pixel),
    )
    items, work = form.count * form.output[0], 16 * made.shape.size  # some taps for each element
    operands = ROI.operands(x=last, regions=regions, pictures=pictures, out=made)
    kernel, check = "roi" if form.mode == "avg" else "roi.largest", partial(_check, layer, error)
    return [
        _turned(layer, x, last, form.pictures, area, form.channels),
        step(layer, kernel, operands, numbers, items, keep=[scale, error], grain=sharing(items, work), check=check),
        _turned(layer, made, outputs[0], form.count, form.channels, elements),
    ]


def _turned(layer: LayerLike, x: Operand, out: Operand, count: int, rows: int, columns: int) -> NativeStep:
    """The step that transposes `count` matrices of (columns, rows)."""
    shape = (count, rows, columns)
    return strided_copy(layer, x, out, shape, (rows * columns, 1, rows), row_major(shape))


def _check(layer: LayerLike, error: Any) -> None:
    """Raise the error that the kernel has noted."""
    kind, error[wrong.is_wrong] = int(error[wrong.is_wrong]), 0
    where = f"layer {layer.name!r} ({layer.op}) failed"
    if kind == NOT_FINITE:
        raise InputError(f"{where}: the numbers of region {error[wrong.index]} must be finite")
    if kind:
        raise BackendError(f"{where}: index {error[wrong.index]} reaches beyond {error[wrong.size]} elements")


class _Axis(NamedTuple):
    """One axis of a region: `output` elements of length `step`, the first at `begin`, with `samples` each.

    Only `seen` samples of an element are read: those that may lie in a picture of `size`, and a few beside it.
    """

    begin: Any
    step: Any
    output: int
    size: int
    samples: int
    seen: int


def _axis(form: Regions, axis: int, begin: Any, end: Any) -> _Axis:
    length, output, size = end - begin, form.output[axis], form.size[axis]
    if not form.half_pixel:
        length = max(length, type(length)(1.0))
    step = length / output
    samples = seen = form.samples if form.samples > 0 else max(0, math.ceil(step))
    if step > 0:
        seen = min(samples, math.ceil(float(size + 1) / float(step) * samples) + 3)
    return _Axis(begin, step, output, size, samples, seen)


def _coordinates(axis: _Axis) -> Any:
    """The coordinates of the samples along an axis, (output, seen), without those that lie far before the picture."""
    wide = axis.begin.dtype.type
    starts = axis.begin + np.arange(axis.output, dtype=wide) * axis.step
    first = np.zeros(axis.output)
    if axis.seen < axis.samples:
        first = np.clip(np.floor((-1.0 - starts) / axis.step * axis.samples - 0.5) - 1, 0, axis.samples - axis.seen)
    within = first[:, None].astype(wide) + np.arange(axis.seen, dtype=wide) + wide(0.5)
    return starts[:, None] + within * axis.step / wide(axis.samples)


def _corners(at: Any, size: int) -> tuple[list[Any], list[Any]]:
    """The two elements around each coordinate, and their weights. Weights are 0 outside the picture."""
    inside = (at >= -1) & (at <= size)
    coordinate = np.clip(np.where(inside, at, 0), 0, size - 1)
    low = np.floor(coordinate).astype(np.int64)
    part = coordinate - low
    return [low, np.minimum(low + 1, size - 1)], [np.where(inside, 1 - part, 0), np.where(inside, part, 0)]


def _pooled(form: Regions, picture: Any, axes: Sequence[tuple[Any, int]]) -> Any:
    (rows, row_weights), (columns, column_weights) = (
        _corners(at, size) for (at, _), size in zip(axes, form.size, strict=True)
    )
    parts = [
        picture[:, r[:, :, None, None], c[None, None]] * (a[:, :, None, None] * b[None, None])
        for r, a in zip(rows, row_weights, strict=True)
        for c, b in zip(columns, column_weights, strict=True)
    ]
    if form.mode == "max":  # the largest weighted corner, as in the operator's first implementation
        return np.maximum.reduce(parts).max((2, 4))
    return sum(parts).sum((2, 4)) / (axes[0][1] * axes[1][1])
