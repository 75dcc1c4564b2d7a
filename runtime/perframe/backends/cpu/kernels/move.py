"""Strided copies of four-byte elements, of which views, joins and pads consist."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.memory import int32s, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.transpose import transpose_square
from perframe.backends.cpu.kernels.vector import copy_floats, stack_numbers


@inline
def _place(n, first, rank, item, coordinates):
    """The offsets in both operands of the item'th of the leading dims, whose coordinates are written down."""
    a, b = n[2], n[3]
    for axis in range(rank - 1, -1, -1):
        c = item % n[5 + axis]
        item //= n[5 + axis]
        coordinates[axis] = c
        a += c * n[first + axis]
        b += c * n[first + n[4] + axis]
    return a, b


@inline
def _next(n, first, rank, coordinates, a, b):
    """The offsets of the item after the one at the coordinates."""
    axis = rank - 1
    while axis >= 0:
        coordinates[axis] += 1
        a += n[first + axis]
        b += n[first + n[4] + axis]
        if coordinates[axis] < n[5 + axis]:
            break
        a -= n[5 + axis] * n[first + axis]
        b -= n[5 + axis] * n[first + n[4] + axis]
        coordinates[axis] = 0
        axis -= 1
    return a, b


def build() -> Any:
    """Rows: [x, out, offset in x, in out, rank, shape..., strides of x..., of out...]; items are rows of the last
    dim.
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rank = n[4]
        first, last = 5 + rank, 4 + rank
        inner, from_step, to_step = n[last], n[first + rank - 1], n[first + 2 * rank - 1]
        coordinates = int64s(stack_numbers())
        x, out = int32s(n[0]), int32s(n[1])
        a, b = _place(n, first, rank - 1, begin, coordinates)
        for _ in range(begin, end):
            if from_step == 1 and to_step == 1:
                copy_floats(n[1] + b * 4, n[0] + a * 4, inner)
            elif from_step == 0 and to_step == 1:
                value = x[a]
                for i in range(inner):
                    out[b + i] = value
            else:
                for i in range(inner):
                    out[b + i * to_step] = x[a + i * from_step]
            a, b = _next(n, first, rank - 1, coordinates, a, b)

    return kernel


def transpose() -> Any:
    """The same where the last dim is contiguous in the output and the one before it in the input; items are squares.

    [x, out, offset in x, in out, rank, shape..., strides of x..., of out...]
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rank = n[4]
        first = 5 + rank
        down, across = n[3 + rank], n[4 + rank]
        from_pitch, to_pitch = n[first + rank - 1], n[first + 2 * rank - 2]
        coordinates = int64s(stack_numbers())
        strips = (down + LANES - 1) // LANES
        a, b = _place(n, first, rank - 2, begin // strips, coordinates)
        for item in range(begin, end):
            strip = item % strips
            r = strip * LANES
            high = min(LANES, down - r)
            for c in range(0, across, LANES):
                transpose_square(
                    n[0] + (a + r + c * from_pitch) * 4,
                    from_pitch,
                    n[1] + (b + r * to_pitch + c) * 4,
                    to_pitch,
                    min(LANES, across - c),
                    high,
                )
            if strip == strips - 1:
                a, b = _next(n, first, rank - 2, coordinates, a, b)

    return kernel
