"""Real numbers as whole ones: q stands for (q - zero point) * scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from perframe.ir import Array
from perframe.layers.quantize import WHOLE_RANGES
from perframe.tensor import DataType

SHRINKS = (1.0, 0.95, 0.9, 0.85, 0.8)  # of the range of few numbers: the best loses less than the whole range does
_LEAST_SCALE = 1e-30


@dataclass(frozen=True)
class Scales:
    """The scales (float32) and the zero points of a tensor, an axis or blocks; None for zero points that are 0."""

    scale: Array
    zero: Array | None


def symmetric(largest: ArrayLike, dtype: DataType) -> Scales:
    """The scales of numbers from -largest to largest."""
    return Scales(_positive(np.asarray(largest, np.float64) / WHOLE_RANGES[dtype][1]), None)


def asymmetric(low: ArrayLike, high: ArrayLike, dtype: DataType) -> Scales:
    """The scales and zero points of numbers from low to high. A range that does not hold 0 is widened to it."""
    least, most = WHOLE_RANGES[dtype]
    low, high = np.minimum(np.asarray(low, np.float64), 0), np.maximum(np.asarray(high, np.float64), 0)
    scale = _positive((high - low) / (most - least))
    zero = np.clip(np.rint(least - low / scale), least, most).astype(dtype.numpy)
    return Scales(scale, zero)


def _positive(scale: Array) -> Array:
    """The scales as float32; that of numbers that are all 0 is 1."""
    return np.asarray(np.where(scale > _LEAST_SCALE, scale, 1), np.float32)


def rounded(values: Array, scales: Scales, dtype: DataType) -> Array:
    """Return values as integers, halves to even, clamped. Scales and zero points broadcast with the values."""
    least, most = WHOLE_RANGES[dtype]
    zero = 0 if scales.zero is None else scales.zero.astype(np.float32)
    return np.clip(np.rint(values / scales.scale) + zero, least, most).astype(dtype.numpy)


def best_symmetric(blocks: Array, dtype: DataType, axis: int) -> Scales:
    """The scales along an axis that lose least, among some ranges. With few numbers a smaller range may lose less."""
    largest = np.abs(blocks).max(axis, keepdims=True)
    tried = [symmetric(largest * shrink, dtype) for shrink in SHRINKS]
    losses = [
        np.square(rounded(blocks, one, dtype).astype(np.float32) * one.scale - blocks).sum(axis, keepdims=True)
        for one in tried
    ]
    best = np.argmin(losses, 0)
    return Scales(np.choose(best, [one.scale for one in tried]), None)
