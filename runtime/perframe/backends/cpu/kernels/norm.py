"""Normalisations along an axis."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.math import exp, log, maximum
from perframe.backends.cpu.kernels.memory import floats, int64s


def softmax() -> Any:
    """[x, out, size, inner, logarithm]; items are (outer, inner) pairs."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out = floats(n[0]), floats(n[1])
        size, inner, logarithm = n[2], n[3], n[4]
        for item in range(begin, end):
            first = item // inner * size * inner + item % inner
            largest = x[first]
            for i in range(size):
                largest = maximum(largest, x[first + i * inner])
            total = float32(0)
            for i in range(size):
                value = exp(x[first + i * inner] - largest)
                out[first + i * inner] = value
                total += value
            if logarithm:
                shift = log(total)
                for i in range(size):
                    out[first + i * inner] = (x[first + i * inner] - largest) - shift
            else:
                for i in range(size):
                    out[first + i * inner] /= total

    return kernel
