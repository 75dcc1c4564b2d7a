"""Reductions, accumulated in float32."""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.math import maximum, minimum
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.sizes import RUN
from perframe.backends.cpu.kernels.vector import stack_block

FEW = 64  # rows that are summed up before they join the total, so that long sums stay exact

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


def _columns(combine: str) -> Any:
    def build(formula: Any, epilogue: Any) -> Any:
        """Rows combined into one: [x, out, groups, rows, pitch of rows, columns, step of groups]; items are (group,
        run of columns).
        """
        start = float32(_START[combine])
        join = {"sum": _add, "product": _times, "largest": maximum, "smallest": minimum}[combine]

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, rows, pitch, columns = floats(n[0]), floats(n[1]), n[3], n[4], n[5]
            runs = (columns + RUN - 1) // RUN
            memory = stack_block()
            total, part = floats(memory), floats(memory + RUN * 4)
            for item in range(begin, end):
                group, first = item // runs, item % runs * RUN
                wide = min(RUN, columns - first)
                at = group * n[6] + first
                for i in range(wide):
                    total[i] = start
                for row in range(0, rows, FEW):
                    for i in range(wide):
                        part[i] = start
                    for r in range(row, min(rows, row + FEW)):
                        for i in range(wide):
                            part[i] = join(part[i], formula(x[at + r * pitch + i]))
                    for i in range(wide):
                        total[i] = join(total[i], part[i])
                for i in range(wide):
                    out[group * columns + first + i] = epilogue(total[i], float32(rows))

        return kernel

    return build


sum, product, largest, smallest = (_reduction(name) for name in ("sum", "product", "largest", "smallest"))
sum_columns, product_columns, largest_columns, smallest_columns = (
    _columns(name) for name in ("sum", "product", "largest", "smallest")
)
