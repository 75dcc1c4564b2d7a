"""Filters that resample with all pixels under an element: Pillow's, with Pillow's arithmetic, so that results agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from perframe.tensor import Array


def _box(x: Array) -> Array:
    return ((x > -0.5) & (x <= 0.5)).astype(np.float64)


def _triangle(x: Array) -> Array:
    return np.maximum(0.0, 1.0 - np.abs(x))


def _cubic(x: Array) -> Array:
    x, a = np.abs(x), -0.5
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


# How far a filter reaches, in pixels of the smaller grid, and its weight at a distance.
FILTERS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "area": (0.5, _box),
    "antialias": (1.0, _triangle),
    "bicubic": (2.0, _cubic),
}


@dataclass(frozen=True, eq=False)
class FilterWeights:
    """The pixels that elements of one axis read: for each the first, and weights of it and of those after it.

    `first` has the shape (elements,), `values` the shape (elements, taps). Each row sums to 1. All pixels lie on the
    axis.
    """

    first: Array
    values: Array

    @property
    def span(self) -> tuple[int, int]:
        """The first pixel that any element reads, and the one after the last."""
        return int(self.first.min()), int(self.first.max()) + self.values.shape[1]

    def table(self, taps: int) -> Array:
        """Shape (elements, 4 + taps), float32: for each element its first pixel and three zeros, and its weights."""
        result = np.zeros((len(self.first), 4 + taps), np.float32)
        result[:, 0], result[:, 4 : 4 + self.values.shape[1]] = self.first, self.values
        return result

    def apply(self, image: Array) -> Array:
        """Filter the first axis of an array, as float32. Elements go by blocks, which read few pixels in vain."""
        flat = image.reshape(len(image), -1)
        result = np.empty((len(self.first), flat.shape[1]), np.float32)
        for begin in range(0, len(self.first), _BLOCK):
            first, values = self.first[begin : begin + _BLOCK], self.values[begin : begin + _BLOCK]
            low, high = int(first.min()), int(first.max()) + values.shape[1]
            matrix = np.zeros((len(first), high - low), np.float32)
            columns = first[:, None] - low + np.arange(values.shape[1])
            matrix[np.arange(len(first))[:, None], columns] = values
            step = max(1, _SMALL // matrix.size)
            for left in range(0, flat.shape[1], step):
                part = flat[low:high, left : left + step].astype(np.float32)
                np.matmul(matrix, part, out=result[begin : begin + _BLOCK, left : left + step])
        return result.reshape(len(self.first), *image.shape[1:])


_BLOCK = 8
# Products of so few multiplications run in the calling thread: to wake others costs more than they save.
_SMALL = 1 << 18


@lru_cache(64)
def weights(name: str, begin: float, length: float, count: int, size: int) -> FilterWeights:
    """The weights of `count` elements that share `length` pixels from the place `begin` of an axis of `size` pixels.

    Pixels beyond the edge weigh nothing. An element that lies wholly beyond it reads the pixel at the edge.
    """
    reach, weight_at = FILTERS[name]
    scale = length / count
    stretch = max(scale, 1.0)
    centers = begin + (np.arange(count) + 0.5) * scale
    first = np.clip((centers - reach * stretch + 0.5).astype(np.int64), 0, size - 1)
    end = np.clip((centers + reach * stretch + 0.5).astype(np.int64), first + 1, size)
    pixels = first[:, None] + np.arange(int((end - first).max()))
    values = weight_at((pixels - centers[:, None] + 0.5) * (1.0 / stretch)) * (pixels < end[:, None])
    totals = values.sum(1, keepdims=True)
    values[totals[:, 0] == 0, 0] = 1.0
    totals[totals == 0] = 1.0
    found = _tight(first, (values / totals).astype(np.float32), size)
    for array in (found.first, found.values):
        array.flags.writeable = False
    return found


def _tight(first: Array, values: Array, size: int) -> FilterWeights:
    """Leave out zeros at the edges, as far as all rows have them, and let each row begin where it ends inside."""
    used = values != 0
    begin, end = used.argmax(1), used.shape[1] - used[:, ::-1].argmax(1)
    taps = int((end - begin).max())
    begin = np.minimum(begin, size - taps - first)
    at = begin[:, None] + np.arange(taps)
    inside = (at >= 0) & (at < used.shape[1])
    kept = np.take_along_axis(values, np.clip(at, 0, used.shape[1] - 1), 1)
    return FilterWeights(first + begin, np.where(inside, kept, np.float32(0)))
