"""Pooling over planes. Vectors run along the lines. The taps of a column are joined first, for a block of lines that
stays in the cache, and then those of each line.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import float32

from perframe.backends.cpu.kernels.fields import POOL
from perframe.backends.cpu.kernels.inlining import inline, spliced
from perframe.backends.cpu.kernels.math import maximum
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import (
    add,
    divide,
    larger_or_nan,
    load,
    load_even,
    load_first,
    splat,
    stack_block,
    store,
    store_first,
)
from perframe.backends.cpu.kernels.window import reach, same_reach, window_of, window_z_of

field = POOL.at


class PoolItem(NamedTuple):
    """The share of an item: lines oy0 to oy1 and columns ox0 to ox1 of a plane of the result."""

    ox0: int
    ox1: int
    oy0: int
    oy1: int
    oz: int
    plane: int


@spliced
def _item_of(n, window, out_z, index):
    """The share of an item, by its number."""
    ox0, rest = index % n[field.column_items] * n[field.column_block], index // n[field.column_items]
    oy0, rest = rest % n[field.line_items] * n[field.line_block], rest // n[field.line_items]
    ox1, oy1 = min(window.out_width, ox0 + n[field.column_block]), min(window.out_height, oy0 + n[field.line_block])
    return PoolItem(ox0, ox1, oy0, oy1, rest % out_z, rest // out_z)


@spliced
def _whole_columns(window, item, right):
    """The columns of an item whose taps are all inside: vectors make them. With stride 2 they read one element more."""
    sx, px, reach_x = window.stride_x, window.pad_x, (window.kernel_x - 1) * window.dilation_x
    c0 = min(item.ox1, max(item.ox0, (px + sx - 1) // sx))
    c1 = c0
    if sx == 1:
        c1 = max(c0, min(item.ox1, window.width + px - reach_x))
    elif sx == 2 and (right + px - reach_x) // 2 - c0 >= LANES:
        c1 = min(item.ox1, (right + px - reach_x) // 2)
    return c0, c1


@inline
def _count_lines(n, oy, planes):
    """The taps of a window's column that count in an average; `planes` is the number of its planes."""
    top, ky, dy, height = (
        oy * n[field.stride_y] - n[field.pad_y],
        n[field.kernel_y],
        n[field.dilation_y],
        n[field.height],
    )
    if n[field.counts_padding]:
        return planes * reach(top, ky, dy, height + n[field.end_y])[1]
    first, past = reach(top, ky, dy, height)
    return planes * (past - first)


def _lines_joined_by(join: Any, nothing: Any) -> Any:
    @inline
    def join_lines(source, planes, plane_step, lines, line_step, target, count):
        """Join the first `count` elements of lines in several planes. The steps lead from one to the next."""
        at = 0
        while at + 2 * LANES <= count:
            total, other = splat(nothing), splat(nothing)
            for plane in range(planes):
                here = source + (plane * plane_step + at) * 4
                for _ in range(lines):
                    total, other = join(total, load(here, 0)), join(other, load(here, LANES))
                    here += line_step * 4
            store(total, target, at)
            store(other, target, at + LANES)
            at += 2 * LANES
        for rest in range(at, count, LANES):
            total = splat(nothing)
            for plane in range(planes):
                here = source + (plane * plane_step + rest) * 4
                for _ in range(lines):
                    total = join(total, load_first(here, 0, count - rest))
                    here += line_step * 4
            store_first(total, target, rest, count - rest)

    return join_lines


def _column_joined(average: bool, nothing: Any) -> Any:
    @inline
    def join_column(n, source, step, target, column, oy0, oy1, planes):
        """Make one output column from lines that are `step` apart; their column 0 is at `source`."""
        out_width, width = n[field.out_width], n[field.width]
        kx, dx, left = n[field.kernel_x], n[field.dilation_x], column * n[field.stride_x] - n[field.pad_x]
        x, out = floats(source), floats(target)
        first, past = reach(left, kx, dx, width)
        counted = reach(left, kx, dx, width + n[field.end_x])[1] if n[field.counts_padding] else past - first
        for line in range(oy1 - oy0):
            total = nothing
            for j in range(first, past):
                value = x[line * step + left + j * dx]
                total = total + value if average else maximum(total, value)
            if average:
                total = total / float32(_count_lines(n, oy0 + line, planes) * counted)
            out[line * out_width + column] = total

    return join_column


def _columns_joined_by(average: bool, join: Any) -> Any:
    @inline
    def join_columns(n, source, target, c0, c1, share):
        """Make the columns of a line whose taps are all inside, from a line whose column 0 is at `source`.

        The last vectors begin earlier, and make some elements again.
        """
        kx, sx, dx, px, count = n[field.kernel_x], n[field.stride_x], n[field.dilation_x], n[field.pad_x], c1 - c0
        shares = splat(float32(share * kx))
        if count < LANES:
            total = load_first(source, c0 - px, count)
            for j in range(1, kx):
                total = join(total, load_first(source, c0 - px + j * dx, count))
            store_first(divide(total, shares) if average else total, target, c0, count)
        elif sx == 1 and count >= 2 * LANES:
            for first in range(c0, c1, 2 * LANES):
                column = min(first, c1 - 2 * LANES)
                here = source + (column - px) * 4
                total, other = load(here, 0), load(here, LANES)
                for _ in range(1, kx):
                    here += dx * 4
                    total, other = join(total, load(here, 0)), join(other, load(here, LANES))
                store(divide(total, shares) if average else total, target, column)
                store(divide(other, shares) if average else other, target, column + LANES)
        else:
            for first in range(c0, c1, LANES):
                column = min(first, c1 - LANES)
                here = source + (column * sx - px) * 4
                total = load(here, 0) if sx == 1 else load_even(here, 0)
                for _ in range(1, kx):
                    here += dx * 4
                    total = join(total, load(here, 0) if sx == 1 else load_even(here, 0))
                store(divide(total, shares) if average else total, target, column)

    return join_columns


def _pool(average: bool) -> Any:
    join, nothing = add if average else larger_or_nan, float32(0 if average else -math.inf)
    join_lines = _lines_joined_by(join, nothing)
    join_column, join_columns = _column_joined(average, nothing), _columns_joined_by(average, join)

    @spliced
    def join_all_lines(n, window, item, plane_at, planes, plane_step, wide, block):
        """Join the lines of an item's windows, for a block of lines of the result."""
        dy, sy, oy = window.dilation_y, window.stride_y, item.oy0
        while oy < item.oy1:
            top = oy * sy - window.pad_y
            i0, i1 = reach(top, window.kernel_y, dy, window.height)
            lines = 1
            if sy == 1 and wide == window.width:  # lines with the same taps are one run
                lines = same_reach(top, i0, i1, dy, sy, window.height, item.oy1 - oy)
            first, to = plane_at + (top + i0 * dy) * window.width * 4, block + (oy - item.oy0) * wide * 4
            join_lines(first, planes, plane_step, i1 - i0, dy * window.width, to, lines * wide)
            oy += lines

    def build() -> Any:
        """Items are (plane, z, block of lines, of columns)."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            window, block = window_of(n, field.height), stack_block()
            size_z, out_z, kz, sz, dz, pz = window_z_of(n, field.size_z)
            width, sx, px = window.width, window.stride_x, window.pad_x
            for index in range(begin, end):
                item = _item_of(n, window, out_z, index)
                front = item.oz * sz - pz
                z0, z1 = reach(front, kz, dz, size_z)
                planes = z1 - z0
                if n[field.counts_padding]:
                    planes = reach(front, kz, dz, size_z + n[field.end_z])[1]
                left = min(width, max(0, item.ox0 * sx - px))
                reached = (item.ox1 - 1) * sx - px + (window.kernel_x - 1) * window.dilation_x + 1
                right = max(left, min(width, reached))
                wide = right - left
                plane_at = n[field.x] + ((item.plane * size_z + front + z0 * dz) * window.height * width + left) * 4
                source, step = block, wide
                if n[field.in_place]:
                    source, step = plane_at + item.oy0 * window.stride_y * width * 4, window.stride_y * width
                else:
                    plane_step = dz * window.height * width
                    join_all_lines(n, window, item, plane_at, z1 - z0, plane_step, wide, block)
                source -= left * 4
                line = (item.plane * out_z + item.oz) * window.out_height + item.oy0
                target = n[field.out] + line * window.out_width * 4
                c0, c1 = _whole_columns(window, item, right)
                for column in range(item.ox0, c0):
                    join_column(n, source, step, target, column, item.oy0, item.oy1, planes)
                for column in range(c1, item.ox1):
                    join_column(n, source, step, target, column, item.oy0, item.oy1, planes)
                for line in range(item.oy1 - item.oy0 if c0 < c1 else 0):
                    share = _count_lines(n, item.oy0 + line, planes) if average else 0
                    below = line * window.out_width * 4
                    join_columns(n, source + line * step * 4, target + below, c0, c1, share)

        return kernel

    return build


average, largest = _pool(True), _pool(False)
