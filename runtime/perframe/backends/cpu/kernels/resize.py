"""Resampling."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import RESIZE
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.vector import copy_floats


def build() -> Any:
    """Resample one axis by taps. Items are (outer, output) rows of `inner`."""
    field = RESIZE.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, indices = floats(n[field.x]), floats(n[field.out]), int64s(n[field.indices])
        weights = floats(n[field.weights])
        size, inner, outputs, taps = n[field.size], n[field.inner], n[field.outputs], n[field.taps]
        for item in range(begin, end):
            output = item % outputs
            plane = item // outputs * size
            at, o = output * taps, item * inner
            if taps == 1 and weights[at] == float32(1):
                copy_floats(n[field.out] + o * 4, n[field.x] + (plane + indices[at]) * inner * 4, inner)
            elif taps == 2 and weights[at] != float32(0) and weights[at + 1] != float32(0):
                u, v = weights[at], weights[at + 1]
                first, second = (plane + indices[at]) * inner, (plane + indices[at + 1]) * inner
                for i in range(inner):
                    out[o + i] = u * x[first + i] + v * x[second + i]
            else:
                for i in range(inner):
                    out[o + i] = float32(0)
                for k in range(taps):
                    weight, first = weights[at + k], (plane + indices[at + k]) * inner
                    if weight != float32(0):
                        for i in range(inner):
                            out[o + i] += weight * x[first + i]

    return kernel
