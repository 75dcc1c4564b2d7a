"""Gathering, of four-byte elements."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.memory import int32s, int64s


def build() -> Any:
    """Gather by int64 indices: [x, indices, out, size, inner, count]; items are (outer, index) pairs."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, indices, out = int32s(n[0]), int64s(n[1]), int32s(n[2])
        size, inner, count = n[3], n[4], n[5]
        for item in range(begin, end):
            index = indices[item % count]
            index += size if index < 0 else 0
            at = (item // count * size + index) * inner
            for i in range(inner):
                out[item * inner + i] = x[at + i]

    return kernel
