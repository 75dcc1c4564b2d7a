"""Strided copies, of which views, joins and splits consist: of elements of 1, 2, 4 and 8 bytes, whatever they mean."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.sizes import LANES, STRIP
from perframe.backends.cpu.kernels.transpose import deinterleave, interleave
from perframe.backends.cpu.kernels.transpose import transpose as transpose_squares
from perframe.backends.cpu.kernels.vector import copy_floats, load_first, stack_numbers, store_first

FEW = 4  # columns that are read or written as runs of whole rows


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
def _next(n, first, rank, coordinates, a, b, count):
    """The offsets of the item `count` after the one at the coordinates, no further than the end of its dim."""
    axis, by = rank - 1, count
    while axis >= 0:
        coordinates[axis] += by
        a += by * n[first + axis]
        b += by * n[first + n[4] + axis]
        if coordinates[axis] < n[5 + axis]:
            break
        a -= n[5 + axis] * n[first + axis]
        b -= n[5 + axis] * n[first + n[4] + axis]
        coordinates[axis] = 0
        axis -= 1
        by = 1
    return a, b


@inline
def _copy_rows(x, out, rows, inner, from_pitch, to_pitch, from_step, to_step):
    """A few rows of elements, pitches and steps apart."""
    for row in range(rows):
        a, b = row * from_pitch, row * to_pitch
        if from_step == 1 and to_step == 1:
            for i in range(inner):
                out[b + i] = x[a + i]
        elif from_step == 0 and to_step == 1:
            value = x[a]
            for i in range(inner):
                out[b + i] = value
        else:
            for i in range(inner):
                out[b + i * to_step] = x[a + i * from_step]


@inline
def _copy_vectors(x, out, rows, inner, from_pitch, to_pitch):
    """Rows of contiguous floats, at addresses."""
    if inner == 1:
        source, target = int32s(x), int32s(out)
        for row in range(rows):
            target[row * to_pitch] = source[row * from_pitch]
    elif inner == 2:
        for row in range(rows):
            int64s(out + row * to_pitch * 4)[0] = int64s(x + row * from_pitch * 4)[0]
    elif inner <= LANES:
        for row in range(rows):
            store_first(load_first(x, row * from_pitch, inner), out, row * to_pitch, inner)
    else:
        for row in range(rows):
            copy_floats(out + row * to_pitch * 4, x + row * from_pitch * 4, inner)


def _rows(pointer: Any, size: int) -> Any:
    floats = size == 4

    def build() -> Any:
        """Rows: [x, out, offset in x, in out, rank, shape..., strides of x..., of out...]; items are rows of the last
        dim.
        """

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            rank = n[4]
            first, last = 5 + rank, 4 + rank
            inner, from_step, to_step = n[last], n[first + rank - 1], n[first + 2 * rank - 1]
            from_pitch = n[first + rank - 2] if rank > 1 else 0
            to_pitch = n[first + 2 * rank - 2] if rank > 1 else 0
            coordinates = int64s(stack_numbers())
            a, b = _place(n, first, rank - 1, begin, coordinates)
            item = begin
            while item < end:
                rows = min(end - item, n[last - 1] - coordinates[rank - 2]) if rank > 1 else 1
                if floats and from_step == 1 and to_step == 1:
                    _copy_vectors(n[0] + a * 4, n[1] + b * 4, rows, inner, from_pitch, to_pitch)
                else:
                    x, out = pointer(n[0] + a * size), pointer(n[1] + b * size)
                    _copy_rows(x, out, rows, inner, from_pitch, to_pitch, from_step, to_step)
                item += rows
                a, b = _next(n, first, rank - 1, coordinates, a, b, rows)

        return kernel

    return build


build, of_bytes, of_shorts, of_words = _rows(int32s, 4), _rows(bools, 1), _rows(shorts, 2), _rows(int64s, 8)


def transpose() -> Any:
    """The same where the last dim is contiguous in the output and the one before it in the input; items are strips of
    rows.

    [x, out, offset in x, in out, rank, shape..., strides of x..., of out...]
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rank = n[4]
        first = 5 + rank
        down, across = n[3 + rank], n[4 + rank]
        from_pitch, to_pitch = n[first + rank - 1], n[first + 2 * rank - 2]
        coordinates = int64s(stack_numbers())
        strips = (down + STRIP - 1) // STRIP
        a, b = _place(n, first, rank - 2, begin // strips, coordinates)
        for item in range(begin, end):
            strip = item % strips
            r = strip * STRIP
            wide = min(STRIP, down - r)
            x, out = n[0] + (a + r) * 4, n[1] + (b + r * to_pitch) * 4
            if across <= FEW and to_pitch == across:
                interleave(x, from_pitch, out, across, wide)
            elif down <= FEW and from_pitch == down:
                deinterleave(x, down, out, to_pitch, across)
            else:
                transpose_squares(x, from_pitch, out, to_pitch, across, wide)
            if strip == strips - 1:
                a, b = _next(n, first, rank - 2, coordinates, a, b, 1)

    return kernel
