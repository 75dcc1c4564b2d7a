"""Reductions, accumulated in float32."""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import REDUCE, REDUCE_COLUMNS
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.math import exp, is_inf, log, maximum, minimum
from perframe.backends.cpu.kernels.memory import add_in_any_order, floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES, RUN
from perframe.backends.cpu.kernels.strides import offset_of
from perframe.backends.cpu.kernels.vector import stack_block

field, KEPT = REDUCE.at, REDUCE.rest  # the kept dims begin at n[KEPT]
WIDE = 4 * LANES  # elements of a row that are reduced side by side
FEW = 64  # rows that are summed up before they join the total, so that long sums stay exact


@inline
def _add(a, b):
    return a + b


@inline
def _times(a, b):
    return a * b


# the value with which a reduction begins, and the function that joins two
_REDUCTIONS: dict[str, tuple[float, Any]] = {
    "sum": (0.0, _add),
    "product": (1.0, _times),
    "largest": (-math.inf, maximum),
    "smallest": (math.inf, minimum),
}


@inline
def first_of(n, item):
    """The offset of the first element of an output element."""
    kept = n[field.kept_rank]
    return offset_of(n, KEPT, KEPT + kept, kept, item)


@inline
def row_of(n, row):
    """The offset of a row of the reduced dims."""
    dims, rank = KEPT + 2 * n[field.kept_rank], n[field.reduced_rank]
    return offset_of(n, dims, dims + rank, rank - 1, row)


@inline
def reduced(n):
    """(elements of the reduced dims, their rows, a row's size, its stride)."""
    dims, rank = KEPT + 2 * n[field.kept_rank], n[field.reduced_rank]
    count = 1
    for axis in range(rank):
        count *= n[dims + axis]
    inner, step = n[dims + rank - 1], n[dims + 2 * rank - 1]
    return count, count // inner if inner else 0, inner, step


def _reduction(combine: str) -> Any:
    def build(formula: Any, epilogue: Any) -> Any:
        """Items are output elements."""
        first_value, join = _REDUCTIONS[combine]
        start = float32(first_value)

        @inline
        def _fold(parts, total):
            half = WIDE // 2
            while half:
                for k in range(half):
                    parts[k] = join(parts[k], parts[k + half])
                half //= 2
            return join(total, parts[0])

        @inline
        def _beside(n, first, rows, inner, parts):
            """Combine WIDE elements side by side, in blocks short enough to keep a long sum exact."""
            x, total, added = floats(n[field.x]), start, 0
            for k in range(WIDE):
                parts[k] = start
            for row in range(rows):
                at, done = first + row_of(n, row), 0
                while done < inner:
                    if added >= FEW:
                        total = _fold(parts, total)
                        added = 0
                        for k in range(WIDE):
                            parts[k] = start
                    if inner - done >= WIDE:
                        many = min(FEW * WIDE, (inner - done) // WIDE * WIDE)
                        for i in range(done, done + many, WIDE):
                            for k in range(WIDE):
                                parts[k] = join(parts[k], formula(x[at + i + k]))
                    else:
                        many = inner - done
                        for k in range(many):
                            parts[k] = join(parts[k], formula(x[at + done + k]))
                    done += many
                    added += 1 + many // WIDE
            return _fold(parts, total)

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out = floats(n[field.x]), floats(n[field.out])
            count, rows, inner, step = reduced(n)
            parts = floats(stack_block())
            for item in range(begin, end):
                first = first_of(n, item)
                total = start
                if step == 1 and count >= 2 * WIDE:
                    total = _beside(n, first, rows, inner, parts)
                else:
                    for row in range(rows):
                        at, part = first + row_of(n, row), start
                        for i in range(inner):
                            part = join(part, formula(x[at + i * step]))
                        total = join(total, part)
                out[item] = epilogue(total, float32(count))

        return kernel

    return build


def log_sum_exp() -> Any:
    """The logarithm of a sum of exponentials, shifted by the largest. Items are output elements."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out = floats(n[field.x]), floats(n[field.out])
        _, rows, inner, step = reduced(n)
        parts = floats(stack_block())
        for item in range(begin, end):
            first = first_of(n, item)
            for k in range(WIDE):
                parts[k] = float32(-math.inf)
            for row in range(rows):
                at = first + row_of(n, row)
                for i in range(0, inner, WIDE):
                    for k in range(min(WIDE, inner - i)):
                        parts[k] = maximum(parts[k], x[at + (i + k) * step])
            largest = parts[0]
            for k in range(WIDE):
                largest = maximum(largest, parts[k])
            shift = float32(0) if is_inf(largest) else largest
            total = float32(0)
            for row in range(rows):
                at = first + row_of(n, row)
                part = float32(0)
                for i in range(0, inner, WIDE):
                    many = min(WIDE, inner - i)
                    for k in range(many):
                        parts[k] = exp(x[at + (i + k) * step] - shift)
                    for k in range(many):
                        part = add_in_any_order(part, parts[k])
                total += part
            out[item] = log(total) + shift

    return kernel


def _columns(combine: str) -> Any:
    field = REDUCE_COLUMNS.at

    def build(formula: Any, epilogue: Any) -> Any:
        """Combine the rows of a group into one. Items are (group, run of columns)."""
        first_value, join = _REDUCTIONS[combine]
        start = float32(first_value)

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out = floats(n[field.x]), floats(n[field.out])
            rows, pitch, columns = n[field.rows], n[field.pitch], n[field.columns]
            runs = (columns + RUN - 1) // RUN
            memory = stack_block()
            total, part = floats(memory), floats(memory + RUN * 4)
            for item in range(begin, end):
                group, first = item // runs, item % runs * RUN
                wide = min(RUN, columns - first)
                at = group * n[field.group_step] + first
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


sum, product, largest, smallest = map(_reduction, _REDUCTIONS)
sum_columns, product_columns, largest_columns, smallest_columns = map(_columns, _REDUCTIONS)
