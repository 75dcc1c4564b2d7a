"""Strided views of four-byte elements."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.memory import int32s, int64s


def build() -> Any:
    """A strided view: [x, out, offset, rank, shape..., strides...]; items are rows of the last dim."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out = int32s(n[0]), int32s(n[1])
        rank = n[3]
        inner, step = n[3 + rank], n[3 + 2 * rank]
        for item in range(begin, end):
            rest, at = item, n[2]
            for axis in range(rank - 2, -1, -1):
                at += (rest % n[4 + axis]) * n[4 + rank + axis]
                rest //= n[4 + axis]
            o = item * inner
            if step == 1:
                for i in range(inner):
                    out[o + i] = x[at + i]
            else:
                for i in range(inner):
                    out[o + i] = x[at + i * step]

    return kernel
