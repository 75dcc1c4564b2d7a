"""Regions of pictures on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.checks import too_large
from perframe.errors import InputError
from perframe.layers.roi import Regions
from perframe.tensor import DataType


def compute(layer: LayerLike, form: Regions, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Region by region; He et al., Mask R-CNN (2017)."""
    x, rois, pictures = inputs
    wide = np.float64 if x.dtype == np.float64 else np.float32
    result = np.zeros((form.count, form.channels, *form.output), wide)
    for index, (roi, picture) in enumerate(zip(rois.astype(wide), pictures.reshape(-1), strict=True)):
        edges = roi[:4] * wide(form.scale) - wide(0.5 if form.half_pixel else 0.0)
        axes = [_samples(form, axis, edges[1 - axis], edges[3 - axis]) for axis in (0, 1)]
        if all(at.size for at, _ in axes):
            result[index] = _pooled(form, x[int(picture)].astype(wide), axes)
    return [result]


def _samples(form: Regions, axis: int, begin: Any, end: Any) -> tuple[Any, int]:
    """Where an axis is sampled, (output, samples), and how many samples an output element has."""
    length, output = end - begin, form.output[axis]
    if not form.half_pixel:
        length = max(length, type(length)(1.0))
    step = length / output
    count = form.samples if form.samples > 0 else max(0, math.ceil(step))
    within = (np.arange(count, dtype=begin.dtype) + begin.dtype.type(0.5)) * step / max(count, 1)
    return begin + (np.arange(output, dtype=begin.dtype) * step)[:, None] + within, count


def _corners(at: Any, size: int) -> tuple[list[Any], list[Any]]:
    """The two elements around each place and their weights, 0 beyond the picture."""
    inside = (at >= -1) & (at <= size)
    place = np.clip(np.where(inside, at, 0), 0, size - 1)
    low = np.floor(place).astype(np.int64)
    part = place - low
    return [low, np.minimum(low + 1, size - 1)], [np.where(inside, 1 - part, 0), np.where(inside, part, 0)]


def _pooled(form: Regions, picture: Any, axes: Sequence[tuple[Any, int]]) -> Any:
    (rows, row_weights), (columns, column_weights) = (
        _corners(at, size) for (at, _), size in zip(axes, form.size, strict=True)
    )
    taps = (form.channels, *rows[0].shape, *columns[0].shape)
    reason = too_large(taps, DataType.of(picture.dtype))
    if reason:
        raise InputError(f"the samples of a region, {reason}")
    parts = [
        picture[:, r[:, :, None, None], c[None, None]] * (a[:, :, None, None] * b[None, None])
        for r, a in zip(rows, row_weights, strict=True)
        for c, b in zip(columns, column_weights, strict=True)
    ]
    if form.mode == "max":  # of the weighted corners, as the operator's first implementation had it
        return np.maximum.reduce(parts).max((2, 4))
    return sum(parts).sum((2, 4)) / (axes[0][1] * axes[1][1])
