"""Running sums and products."""

from __future__ import annotations

from typing import Any

from numba import types

from perframe.backends.cpu.kernels.fields import CUMULATE
from perframe.backends.cpu.kernels.memory import POINTERS, int64s
from perframe.backends.cpu.kernels.sizes import RUN


def build(dtype: str, combine: Any, start: int) -> Any:
    """Items are (outer, run of columns). The first element is combined with `start`."""
    field = CUMULATE.at
    pointer, kind = POINTERS[dtype], getattr(types, dtype)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out = pointer(n[field.x]), pointer(n[field.out])
        size, inner, exclusive, reverse = n[field.size], n[field.inner], n[field.is_exclusive], n[field.is_reverse]
        runs = (inner + RUN - 1) // RUN
        for item in range(begin, end):
            first = item // runs * size * inner + item % runs * RUN
            wide = min(RUN, inner - item % runs * RUN)
            last = (size - 1) * inner
            at, step = first + (last if reverse else 0), -inner if reverse else inner
            if wide == 1:
                total = kind(start)
                for _ in range(size):
                    before = total
                    total = kind(combine(total, x[at]))
                    out[at] = before if exclusive else total
                    at += step
            elif exclusive:
                for i in range(wide):
                    out[at + i] = kind(start)
                for _ in range(1, size):
                    for i in range(wide):
                        out[at + step + i] = kind(combine(out[at + i], x[at + i]))
                    at += step
            else:
                for i in range(wide):
                    out[at + i] = kind(combine(kind(start), x[at + i]))
                for _ in range(1, size):
                    for i in range(wide):
                        out[at + step + i] = kind(combine(out[at + i], x[at + step + i]))
                    at += step

    return kernel
