"""Winograd's convolution by 3 x 3 kernels, F(4 x 4, 3 x 3): sixteen outputs cost 36 products instead of 144.

A tile of 6 x 6 elements becomes values at 36 points, each is multiplied by that of the transformed kernel, and the
products of all channels become a tile of 4 x 4 outputs. Lavin and Gray, "Fast Algorithms for Convolutional Neural
Networks", 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from perframe.layers.conv import Convolution

TILE, TAPS = 4, 3  # outputs of a tile, and of the kernel, along a dim
POINTS = (TILE + TAPS - 1) ** 2
# Along a dim the points are 0, these and their negatives, and infinity. The errors of sums are half those of the usual
# points 1 and 2 (measured for a dozen pairs of short binary fractions).
NEAR, FAR = 5 / 8, 11 / 8
SOME_KERNELS = 768  # are transformed at a time: for so small a product, BLAS wakes no threads, which cost far more
FEW_CHANNELS = 16  # with fewer channels, the transforms cost more than the products that they save


def _powers(point: float, others: Sequence[float]) -> list[float]:
    """A row of the weights' transform: the powers of a point over the product of its distances to the others."""
    scale = math.prod(point - other for other in others)
    return [1 / scale, point / scale, point**2 / scale]


_FINITE = (0.0, NEAR, -NEAR, FAR, -FAR)
_G = np.array([*(_powers(p, [other for other in _FINITE if other != p]) for p in _FINITE), [0, 0, 1]])


def transforms(form: Convolution) -> bool:
    """Whether Winograd applies and pays: a plain 3 x 3 convolution with enough channels."""
    window = form.window
    plain = window.kernel == (TAPS, TAPS) and window.strides == window.dilations == (1, 1) and form.groups == 1
    return plain and min(form.channels, form.outputs) >= FEW_CHANNELS


def transformed(weights: Any, out: Any = None) -> Any:
    """Weights (outputs, channels, 3, 3) at the points: (POINTS, channels, outputs), float32, in `out` if given."""
    outputs, channels = weights.shape[:2]
    kernels, both = weights.reshape(outputs, channels, TAPS**2), np.kron(_G, _G)  # the kernel may have dims of 1
    if out is None:
        out = np.empty((POINTS, channels, outputs), np.float32)
    some = max(1, SOME_KERNELS // max(1, outputs))
    for begin in range(0, channels, some):
        part = kernels[:, begin : begin + some].transpose(2, 1, 0)
        rows = np.ascontiguousarray(part, np.float64).reshape(TAPS**2, part.shape[1] * outputs)
        out[:, begin : begin + some] = (both @ rows).reshape(POINTS, part.shape[1], outputs)
    return out
