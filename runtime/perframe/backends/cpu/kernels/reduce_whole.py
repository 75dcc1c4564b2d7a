"""Reductions of integers, which wrap around as in NumPy. LLVM vectorizes them: any order gives the same result."""

from __future__ import annotations

from typing import Any

from numba import int64, types

from perframe.backends.cpu.kernels.fields import REDUCE_COLUMNS
from perframe.backends.cpu.kernels.memory import POINTERS, int64s
from perframe.backends.cpu.kernels.reduce import field, first_of, reduced, row_of
from perframe.backends.cpu.kernels.sizes import RUN
from perframe.backends.cpu.kernels.vector import stack_block
from perframe.backends.cpu.kernels.whole import trunc_div


def build(dtype: str, start: int, averages: bool, combine: Any) -> Any:
    """Items are output elements."""
    pointer, kind = POINTERS[dtype], getattr(types, dtype)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out = pointer(n[field.x]), pointer(n[field.out])
        count, rows, inner, step = reduced(n)
        for item in range(begin, end):
            first, total = first_of(n, item), int64(start)  # its lowest bits are those of a narrow total
            for row in range(rows):
                at = first + row_of(n, row)
                if step == 1:
                    for i in range(inner):
                        total = combine(total, int64(x[at + i]))
                else:
                    for i in range(inner):
                        total = combine(total, int64(x[at + i * step]))
            out[item] = kind(trunc_div(int64(kind(total)), count)) if averages else kind(total)

    return kernel


def columns(dtype: str, start: int, averages: bool, combine: Any) -> Any:
    """Combine the rows of a group into one. Items are (group, run of columns)."""
    field = REDUCE_COLUMNS.at
    pointer, kind = POINTERS[dtype], getattr(types, dtype)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out = pointer(n[field.x]), pointer(n[field.out])
        rows, pitch, columns = n[field.rows], n[field.pitch], n[field.columns]
        runs, total = (columns + RUN - 1) // RUN, pointer(stack_block())
        for item in range(begin, end):
            group, first = item // runs, item % runs * RUN
            wide, at = min(RUN, columns - first), group * n[field.group_step] + first
            for i in range(wide):
                total[i] = kind(start)
            for row in range(rows):
                for i in range(wide):
                    total[i] = kind(combine(total[i], x[at + row * pitch + i]))
            for i in range(wide):
                out[group * columns + first + i] = kind(trunc_div(total[i], rows)) if averages else total[i]

    return kernel
