"""Joining, of four-byte elements."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.memory import int32s, int64s


def build() -> Any:
    """One input of a concatenation: [x, out, outer, run, first, total]; items are rows."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out = int32s(n[0]), int32s(n[1])
        run, first, total = n[3], n[4], n[5]
        for row in range(begin, end):
            for i in range(run):
                out[row * total + first + i] = x[row * run + i]

    return kernel
