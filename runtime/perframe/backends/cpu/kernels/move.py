"""Strided copies of elements of 1, 2, 4 and 8 bytes. Views, joins and splits consist of them."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.fields import MOVE
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.sizes import LANES, STRIP
from perframe.backends.cpu.kernels.transpose import deinterleave, interleave
from perframe.backends.cpu.kernels.transpose import transpose as transpose_squares
from perframe.backends.cpu.kernels.vector import copy_floats, load_first, stack_numbers, store_first

field, SHAPE = MOVE.at, MOVE.rest
FEW = 4  # so few columns are read or written as runs of whole rows


@inline
def _walk_to(n, rank, item, coordinates):
    """The offsets in both operands at the item'th coordinates of the first `rank` dims. Writes the coordinates."""
    a, b = n[field.x_offset], n[field.out_offset]
    from_strides, to_strides = SHAPE + n[field.rank], SHAPE + 2 * n[field.rank]
    for axis in range(rank - 1, -1, -1):
        c = item % n[SHAPE + axis]
        item //= n[SHAPE + axis]
        coordinates[axis] = c
        a += c * n[from_strides + axis]
        b += c * n[to_strides + axis]
    return a, b


@inline
def _walk_on(n, rank, coordinates, a, b, count):
    """The offsets `count` items after the coordinates, which lie no further than the end of their dim."""
    from_strides, to_strides = SHAPE + n[field.rank], SHAPE + 2 * n[field.rank]
    axis, by = rank - 1, count
    while axis >= 0:
        coordinates[axis] += by
        a += by * n[from_strides + axis]
        b += by * n[to_strides + axis]
        if coordinates[axis] < n[SHAPE + axis]:
            break
        a -= n[SHAPE + axis] * n[from_strides + axis]
        b -= n[SHAPE + axis] * n[to_strides + axis]
        coordinates[axis] = 0
        axis -= 1
        by = 1
    return a, b


@inline
def _copy_rows(x, out, rows, inner, from_pitch, to_pitch, from_step, to_step):
    """Copy a few rows of elements. The rows lie pitches apart, and the elements steps."""
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
    """Copy rows of contiguous floats between addresses."""
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
        """Items are rows of the last dim."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            rank = n[field.rank]
            # the indices of the last dim, and of its strides
            last, from_last, to_last = SHAPE + rank - 1, SHAPE + 2 * rank - 1, SHAPE + 3 * rank - 1
            inner, from_step, to_step = n[last], n[from_last], n[to_last]
            from_pitch = n[from_last - 1] if rank > 1 else 0
            to_pitch = n[to_last - 1] if rank > 1 else 0
            coordinates = int64s(stack_numbers())
            a, b = _walk_to(n, rank - 1, begin, coordinates)
            item = begin
            while item < end:
                rows = min(end - item, n[last - 1] - coordinates[rank - 2]) if rank > 1 else 1
                if floats and from_step == 1 and to_step == 1:
                    _copy_vectors(n[field.x] + a * 4, n[field.out] + b * 4, rows, inner, from_pitch, to_pitch)
                else:
                    x, out = pointer(n[field.x] + a * size), pointer(n[field.out] + b * size)
                    _copy_rows(x, out, rows, inner, from_pitch, to_pitch, from_step, to_step)
                item += rows
                a, b = _walk_on(n, rank - 1, coordinates, a, b, rows)

        return kernel

    return build


build, of_bytes, of_shorts, of_words = _rows(int32s, 4), _rows(bools, 1), _rows(shorts, 2), _rows(int64s, 8)


def transpose() -> Any:
    """Copy from where the dim before the last is contiguous to where the last is. Items are strips of rows."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rank = n[field.rank]
        last, from_last, to_last = SHAPE + rank - 1, SHAPE + 2 * rank - 1, SHAPE + 3 * rank - 1
        down, across, from_pitch, to_pitch = n[last - 1], n[last], n[from_last], n[to_last - 1]
        coordinates = int64s(stack_numbers())
        strips = (down + STRIP - 1) // STRIP
        a, b = _walk_to(n, rank - 2, begin // strips, coordinates)
        for item in range(begin, end):
            strip = item % strips
            r = strip * STRIP
            wide = min(STRIP, down - r)
            x, out = n[field.x] + (a + r) * 4, n[field.out] + (b + r * to_pitch) * 4
            if across <= FEW and to_pitch == across:
                interleave(x, from_pitch, out, across, wide)
            elif down <= FEW and from_pitch == down:
                deinterleave(x, down, out, to_pitch, across)
            else:
                transpose_squares(x, from_pitch, out, to_pitch, across, wide)
            if strip == strips - 1:
                a, b = _walk_on(n, rank - 2, coordinates, a, b, 1)

    return kernel
