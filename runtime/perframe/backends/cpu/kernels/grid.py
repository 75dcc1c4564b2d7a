"""Sampling at the points of grids: the taps of a block of points are found once, and then added up for each channel."""

from __future__ import annotations

from typing import Any

from numba import float32, int32

from perframe.backends.cpu.kernels.fields import GRID
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.math import floor, round_even
from perframe.backends.cpu.kernels.memory import floats, int32s, int64s, select
from perframe.backends.cpu.kernels.sizes import BORDER, CUBIC, LANES, LINEAR, NEAREST, POINT_BLOCK, REFLECTION, ZEROS
from perframe.backends.cpu.kernels.vector import load_first, multiply_add, splat, stack_block, store_first

field = GRID.at
FAR = float32(2.0**30)  # a coordinate beyond this samples like an infinite one, and still fits into an integer
MOST_TAPS = 64  # of four along each of three axes


@inline
def _reflected(at, low, high):
    """Reflect a coordinate at the borders until it lies between them."""
    if low <= at <= high:
        return at
    length = high - low
    if length <= 0:
        return low
    beyond = low - at if at < low else at - high
    times = floor(beyond / length)
    rest = beyond - times * length
    from_low = (at < low) == (times % float32(2) == 0)
    return low + rest if from_low else high - rest


@inline
def _weight(mode, tap, part):
    """The weight of a tap. Cubic ones are those of Keys' convolution (1981)."""
    if mode == NEAREST:
        return float32(1)
    if mode == LINEAR:
        return part if tap else float32(1) - part
    a, d = float32(-0.75), abs(float32(tap - 1) - part)
    near = ((a + float32(2)) * d - (a + float32(3))) * d * d + float32(1)
    return select(d <= float32(1), near, ((a * d - float32(5) * a) * d + float32(8) * a) * d - float32(4) * a)


@inline
def _taps(grid, step, many, size, mode, padding, aligned, wheres, indices, weights):
    """Write the taps of one axis, tap by tap, for each point: the element's index, -1 for none, and the weight.

    The coordinates lie `step` apart. Return the number of taps.
    """
    extent = float32(size)
    low, high = (float32(0), extent - float32(1)) if aligned else (float32(-0.5), extent - float32(0.5))
    scale, shift = (extent - float32(1), float32(0)) if aligned else (extent, float32(1))
    for p in range(many):
        if aligned:
            where = (grid[p * step] + float32(1)) / float32(2) * scale
        else:
            where = ((grid[p * step] + float32(1)) * scale - shift) / float32(2)
        where = select(where == where, where, -FAR)
        where = select(where > FAR, FAR, select(where < -FAR, -FAR, where))
        wheres[p] = round_even(where) if mode == NEAREST else where
    if padding == BORDER:
        for p in range(many):
            where = wheres[p]
            inner = select(where < 0, float32(0), select(where > extent - float32(1), extent - float32(1), where))
            wheres[p] = select((where < low) | (where > high), inner, where)
    elif padding == REFLECTION:
        for p in range(many):
            wheres[p] = _reflected(wheres[p], low, high)
    count = 1 if mode == NEAREST else (2 if mode == LINEAR else 4)
    for tap in range(count):
        begin, row = tap - (1 if mode == CUBIC else 0), tap * POINT_BLOCK
        if padding == REFLECTION:
            for p in range(many):
                index = int32(_reflected(floor(wheres[p]) + float32(begin), low, high))
                indices[row + p] = min(max(index, 0), size - 1)
        else:
            for p in range(many):
                index = int32(floor(wheres[p]) + float32(begin))
                outside = (index < 0) | (index >= size)
                inner = select(index < 0, int32(0), select(index >= size, int32(size - 1), index))
                indices[row + p] = select(outside & (padding == ZEROS), int32(-1), inner)
        for p in range(many):
            weights[row + p] = _weight(mode, tap, wheres[p] - floor(wheres[p]))
    return count


@inline
def _rest(many, indices, weights):
    """Write the one tap of an axis that the data lacks."""
    for p in range(many):
        indices[p], weights[p] = int32(0), float32(1)
    return 1


@inline
def _by_planes(n, batch, first, many, taps, offsets, weights, sums):
    """Add up the taps of all points, channel by channel."""
    channels, points, out = n[field.channels], n[field.points], floats(n[field.out])
    volume = n[field.depth] * n[field.height] * n[field.width]
    for channel in range(batch * channels, (batch + 1) * channels):
        plane = floats(n[field.x] + 4 * channel * volume)
        for p in range(many):
            sums[p] = float32(0)
        for row in range(0, taps * POINT_BLOCK, POINT_BLOCK):
            for p in range(many):
                offset = offsets[row + p]
                value = plane[max(offset, int32(0))] * weights[row + p]
                sums[p] += select(offset >= 0, value, float32(0))
        for p in range(many):
            out[channel * points + first + p] = sums[p]


@inline
def _by_pixels(n, batch, first, many, taps, offsets, weights, sums):
    """Add up the taps of all channels, point by point. Data and result have the channels last."""
    channels = n[field.channels]
    x = n[field.x] + 4 * batch * n[field.depth] * n[field.height] * n[field.width] * channels
    out = n[field.out] + 4 * (batch * n[field.points] + first) * channels
    for p in range(many):
        for c in range(0, channels, LANES):
            count, total = min(LANES, channels - c), splat(float32(0))
            for row in range(p, taps * POINT_BLOCK, POINT_BLOCK):
                if offsets[row] >= 0:
                    value = load_first(x, offsets[row] * channels + c, count)
                    total = multiply_add(value, splat(weights[row]), total)
            store_first(total, out, p * channels + c, count)


def _sampling(add_up: Any) -> Any:
    def build() -> Any:
        """Items are (batch, block of points)."""
        axis = 4 * POINT_BLOCK  # at most four taps

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            mode, padding, aligned = n[field.mode], n[field.padding], n[field.align_corners] != 0
            points, dims = n[field.points], n[field.dims]
            depth, height, width = n[field.depth], n[field.height], n[field.width]
            blocks = (points + POINT_BLOCK - 1) // POINT_BLOCK
            memory = stack_block()
            offsets, weights = int32s(memory), floats(memory + 4 * MOST_TAPS * POINT_BLOCK)
            sums = floats(memory + 8 * MOST_TAPS * POINT_BLOCK)
            along = memory + 4 * (2 * MOST_TAPS + 1) * POINT_BLOCK
            zs, ys, xs = int32s(along), int32s(along + 4 * axis), int32s(along + 8 * axis)
            by_z, by_y, by_x = floats(along + 12 * axis), floats(along + 16 * axis), floats(along + 20 * axis)
            for item in range(begin, end):
                batch, first = item // blocks, item % blocks * POINT_BLOCK
                many, taps = min(POINT_BLOCK, points - first), 0
                at = n[field.grid] + 4 * dims * (batch * points + first)
                across = _taps(floats(at), dims, many, width, mode, padding, aligned, sums, xs, by_x)
                down, deep = _rest(many, ys, by_y), _rest(many, zs, by_z)
                if dims > 1:
                    down = _taps(floats(at + 4), dims, many, height, mode, padding, aligned, sums, ys, by_y)
                if dims > 2:
                    deep = _taps(floats(at + 8), dims, many, depth, mode, padding, aligned, sums, zs, by_z)
                for i in range(0, deep * POINT_BLOCK, POINT_BLOCK):
                    for j in range(0, down * POINT_BLOCK, POINT_BLOCK):
                        for k in range(0, across * POINT_BLOCK, POINT_BLOCK):
                            row = taps * POINT_BLOCK
                            for p in range(many):
                                z, y, x = zs[i + p], ys[j + p], xs[k + p]
                                offset = int32((z * int32(height) + y) * int32(width) + x)
                                offsets[row + p] = select((z | y | x) < 0, int32(-1), offset)
                                weights[row + p] = by_z[i + p] * by_y[j + p] * by_x[k + p]
                            taps += 1
                add_up(n, batch, first, many, taps, offsets, weights, sums)

        return kernel

    return build


build, pixels = _sampling(_by_planes), _sampling(_by_pixels)
