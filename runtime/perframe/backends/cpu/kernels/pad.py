"""Padding, of four-byte elements."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.memory import int32s, int64s
from perframe.backends.cpu.kernels.vector import copy_floats


def build() -> Any:
    """Constant padding: [x, out, value, rank, in shape..., out shape..., before...]; items are rows of the output."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        out, fill = int32s(n[1]), int32s(n[2])
        rank = n[3]
        size, total, before = n[3 + rank], n[3 + 2 * rank], n[3 + 3 * rank]
        for item in range(begin, end):
            rest, at, step, inside = item, 0, size, True
            for axis in range(rank - 2, -1, -1):
                c = rest % n[4 + rank + axis] - n[4 + 2 * rank + axis]
                rest //= n[4 + rank + axis]
                inside = inside and 0 <= c < n[4 + axis]
                at += c * step
                step *= n[4 + axis]
            o = item * total
            first = min(total, max(0, before)) if inside else total
            last = max(first, min(total, size + before)) if inside else total
            for i in range(first):
                out[o + i] = fill[0]
            if first < last:
                copy_floats(n[1] + (o + first) * 4, n[0] + (at + first - before) * 4, last - first)
            for i in range(last, total):
                out[o + i] = fill[0]

    return kernel
