"""Rotary embeddings: rows of pairs that are rotated."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.fields import ROTARY
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.strides import offset_of


def build() -> Any:
    """Items are rows."""
    field, dims = ROTARY.at, ROTARY.rest

    @inline
    def halves(source, cos, sin, target, half, past):
        """The second half of the tables begins `past` numbers behind the first."""
        x, c, s, out = floats(source), floats(cos), floats(sin), floats(target)
        for i in range(half):
            a, b = x[i], x[half + i]
            out[i] = a * c[i] - b * s[i]
            out[half + i] = b * c[past + i] + a * s[past + i]

    @inline
    def neighbours(source, cos, sin, target, half):
        x, c, s, out = floats(source), floats(cos), floats(sin), floats(target)
        for i in range(half):
            a, b = x[2 * i], x[2 * i + 1]
            out[2 * i] = a * c[2 * i] - b * s[2 * i]
            out[2 * i + 1] = b * c[2 * i + 1] + a * s[2 * i + 1]

    @inline
    def neighbours_by_pair(source, cos, sin, target, half):
        x, c, s, out = floats(source), floats(cos), floats(sin), floats(target)
        for i in range(half):
            a, b = x[2 * i], x[2 * i + 1]
            out[2 * i] = a * c[i] - b * s[i]
            out[2 * i + 1] = b * c[i] + a * s[i]

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        size, by_pair, rank = n[field.size], n[field.by_pair], n[field.rank]
        half = size // 2
        for row in range(begin, end):
            source, target = n[field.x] + row * size * 4, n[field.out] + row * size * 4
            cos = n[field.cos] + offset_of(n, dims, dims + rank, rank, row) * 4
            sin = n[field.sin] + offset_of(n, dims, dims + 2 * rank, rank, row) * 4
            if not n[field.interleaved]:
                halves(source, cos, sin, target, half, 0 if by_pair else half)
            elif by_pair:
                neighbours_by_pair(source, cos, sin, target, half)
            else:
                neighbours(source, cos, sin, target, half)

    return kernel
