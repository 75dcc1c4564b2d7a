"""Pooling over planes. Vectors run along the lines. The taps of a column are joined first, for a block of lines that
stays in the cache, and then those of each line.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import POOL
from perframe.backends.cpu.kernels.inlining import inline
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


def _pool(average: bool) -> Any:
    field = POOL.at
    join, nothing = add if average else larger_or_nan, float32(0 if average else -math.inf)

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

    @inline
    def count_lines(n, oy, planes):
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
                total = total / float32(count_lines(n, oy0 + line, planes) * counted)
            out[line * out_width + column] = total

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

    def build() -> Any:
        """Items are (plane, z, block of lines, of columns)."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, counting = n[field.x], n[field.out], n[field.counts_padding]
            height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
            size_z, out_z, kz, sz, dz, pz = window_z_of(n, field.size_z)
            line_block, column_block = n[field.line_block], n[field.column_block]
            line_items, column_items = n[field.line_items], n[field.column_items]
            block, reach_x = stack_block(), (kx - 1) * dx
            for item in range(begin, end):
                ox0, rest = item % column_items * column_block, item // column_items
                oy0, rest = rest % line_items * line_block, rest // line_items
                oz, plane = rest % out_z, rest // out_z
                ox1, oy1 = min(out_width, ox0 + column_block), min(out_height, oy0 + line_block)
                front = oz * sz - pz
                z0, z1 = reach(front, kz, dz, size_z)
                planes = reach(front, kz, dz, size_z + n[field.end_z])[1] if counting else z1 - z0
                left = min(width, max(0, ox0 * sx - px))
                right = max(left, min(width, (ox1 - 1) * sx - px + reach_x + 1))
                wide = right - left
                plane_at = x + ((plane * size_z + front + z0 * dz) * height * width + left) * 4
                source, step, oy = block, wide, oy0
                if n[field.in_place]:
                    source, step, oy = plane_at + oy0 * sy * width * 4, sy * width, oy1
                while oy < oy1:
                    top = oy * sy - py
                    i0, i1 = reach(top, ky, dy, height)
                    lines = 1
                    if sy == 1 and wide == width:  # lines with the same taps are one run
                        lines = same_reach(top, i0, i1, dy, sy, height, oy1 - oy)
                    from_line, to = plane_at + (top + i0 * dy) * width * 4, block + (oy - oy0) * wide * 4
                    down = dz * height * width
                    join_lines(from_line, z1 - z0, down, i1 - i0, dy * width, to, lines * wide)
                    oy += lines
                source -= left * 4
                target = out + ((plane * out_z + oz) * out_height + oy0) * out_width * 4
                # vectors make the columns whose taps are all inside; those of stride 2 read one element more
                c0 = min(ox1, max(ox0, (px + sx - 1) // sx))
                c1 = c0
                if sx == 1:
                    c1 = max(c0, min(ox1, width + px - reach_x))
                elif sx == 2 and (right + px - reach_x) // 2 - c0 >= LANES:
                    c1 = min(ox1, (right + px - reach_x) // 2)
                for column in range(ox0, c0):
                    join_column(n, source, step, target, column, oy0, oy1, planes)
                for column in range(c1, ox1):
                    join_column(n, source, step, target, column, oy0, oy1, planes)
                for line in range(oy1 - oy0 if c0 < c1 else 0):
                    share = count_lines(n, oy0 + line, planes) if average else 0
                    join_columns(n, source + line * step * 4, target + line * out_width * 4, c0, c1, share)

        return kernel

    return build


average, largest = _pool(True), _pool(False)
