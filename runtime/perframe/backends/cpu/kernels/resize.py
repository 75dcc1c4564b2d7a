"""Resampling."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.memory import floats, int64s


def build() -> Any:
    """One axis by taps: [x, out, indices, weights, size, inner, outputs, taps]; items are (outer, output) rows of
    `inner`.
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, indices, weights = floats(n[0]), floats(n[1]), int64s(n[2]), floats(n[3])
        size, inner, outputs, taps = n[4], n[5], n[6], n[7]
        for item in range(begin, end):
            output = item % outputs
            plane = item // outputs * size
            for i in range(inner):
                total = float32(0)
                for k in range(taps):
                    at = output * taps + k
                    weight = weights[at]
                    total += weight * x[(plane + indices[at]) * inner + i] if weight != float32(0) else float32(0)
                out[item * inner + i] = total

    return kernel
