"""Reductions, accumulated in float32."""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.math import maximum, minimum
from perframe.backends.cpu.kernels.memory import floats, int64s

_START: dict[str, float] = {"sum": 0.0, "product": 1.0, "largest": -math.inf, "smallest": math.inf}


@inline
def _add(a, b):
    return a + b


@inline
def _times(a, b):
    return a * b


def _reduction(combine: str) -> Any:
    def build(formula: Any, epilogue: Any) -> Any:
        """[x, out, kept rank, kept shape..., strides..., reduced rank, shape..., strides...]; items are output
        elements.
        """
        start = float32(_START[combine])
        join = {"sum": _add, "product": _times, "largest": maximum, "smallest": minimum}[combine]

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out = floats(n[0]), floats(n[1])
            kept = n[2]
            base = 3 + 2 * kept
            rank = n[base]
            count, rows = 1, 1
            for axis in range(rank):
                count *= n[base + 1 + axis]
            inner, step = n[base + rank], n[base + 2 * rank]
            rows = count // inner if inner else 0
            for item in range(begin, end):
                rest, first = item, 0
                for axis in range(kept - 1, -1, -1):
                    first += (rest % n[3 + axis]) * n[3 + kept + axis]
                    rest //= n[3 + axis]
                total = start
                for row in range(rows):
                    rest, at = row, first
                    for axis in range(rank - 2, -1, -1):
                        at += (rest % n[base + 1 + axis]) * n[base + 1 + rank + axis]
                        rest //= n[base + 1 + axis]
                    part = start
                    for i in range(inner):
                        part = join(part, formula(x[at + i * step]))
                    total = join(total, part)
                out[item] = epilogue(total, float32(count))

        return kernel

    return build


sum, product, largest, smallest = (_reduction(name) for name in ("sum", "product", "largest", "smallest"))
