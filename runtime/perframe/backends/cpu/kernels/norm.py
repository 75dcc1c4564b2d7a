"""Normalisations along an axis."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.math import exp, log, maximum
from perframe.backends.cpu.kernels.memory import add_in_any_order, floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import larger_or_nan, load, stack_block, store


def softmax() -> Any:
    """[x, out, size, inner, logarithm]; items are (outer, inner) pairs."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out = floats(n[0]), floats(n[1])
        size, inner, logarithm = n[2], n[3], n[4]
        for item in range(begin, end):
            first = item // inner * size * inner + item % inner
            largest = x[first]
            if inner == 1 and size >= 2 * LANES:
                largest = _largest(n[0] + first * 4, size)
            else:
                for i in range(size):
                    largest = maximum(largest, x[first + i * inner])
            total = float32(0)
            if inner == 1:
                for i in range(size):
                    out[first + i] = exp(x[first + i] - largest)
                for i in range(size):
                    total = add_in_any_order(total, out[first + i])
            else:
                for i in range(size):
                    value = exp(x[first + i * inner] - largest)
                    out[first + i * inner] = value
                    total += value
            if logarithm:
                shift = log(total)
                for i in range(size):
                    out[first + i * inner] = (x[first + i * inner] - largest) - shift
            elif inner == 1:
                for i in range(size):
                    out[first + i] /= total
            else:
                for i in range(size):
                    out[first + i * inner] /= total

    return kernel


@inline
def _largest(x, size):
    """The largest of a row of some vectors; the last one overlaps."""
    found = load(x, 0)
    for i in range(LANES, size, LANES):
        found = larger_or_nan(found, load(x, min(i, size - LANES)))
    memory = stack_block()
    store(found, memory, 0)
    lanes = floats(memory)
    largest = lanes[0]
    for i in range(LANES):
        largest = maximum(largest, lanes[i])
    return largest
