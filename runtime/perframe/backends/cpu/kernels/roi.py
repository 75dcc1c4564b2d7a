"""Regions of pictures with the channels last. Bilinear weights are products of a weight for the row and one for the
column, so that the samples of an element are summed up along each axis first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32, int64

from perframe.backends.cpu.kernels.fields import GATHER_ERROR, ROI
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.math import ceil, floor
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.sizes import BLOCK, LANES, NOT_FINITE
from perframe.backends.cpu.kernels.vector import (
    divide,
    larger_or_nan,
    load,
    load_first,
    multiply,
    multiply_add,
    splat,
    stack_block,
    store,
    store_first,
)

field, wrong = ROI.at, GATHER_ERROR.at
MOST_SAMPLES = float32(2.0**24)  # along one side of an element; a larger region is larger than any picture
INFINITE = float32(np.inf)


@inline
def _element(begin, end, index, output, size, samples, half_pixel):
    """(start, length, samples, the first one that may lie in the picture, the end of those) of an element."""
    extent = end - begin
    if not half_pixel:
        extent = max(extent, float32(1))
    length = extent / float32(output)
    start = begin + float32(index) * length
    count = samples if samples > 0 else int64(min(max(ceil(length), float32(0)), MOST_SAMPLES))
    if length <= 0:
        return start, length, count, int64(0), count
    per_length = float32(count) / length
    seen = int64(min(ceil(float32(size + 1) * per_length) + float32(3), MOST_SAMPLES))
    if seen >= count:
        return start, length, count, int64(0), count
    before = floor((float32(-1) - start) * per_length - float32(0.5)) - float32(1)
    first = int64(min(max(before, float32(0)), float32(count - seen)))
    return start, length, count, first, first + seen


@inline
def _sample(start, length, count, i, size):
    """(whether sample i lies in the picture, the elements before and behind it, the weight of the latter)."""
    at = start + (float32(i) + float32(0.5)) * length / float32(count)
    inside = (at >= float32(-1)) & (at <= float32(size))
    near = min(max(at if inside else float32(0), float32(0)), float32(size - 1))
    low = int64(near)
    return inside, low, min(low + 1, size - 1), near - float32(low)


@inline
def _weights(element, size, weights):
    """Write the weight of each row (or column) that the samples read; return (the first one, their number)."""
    start, length, count, first, last = element
    begin, end = int64(0), int64(0)
    for i in range(first, last):
        ahead = i if length > 0 else first + last - 1 - i  # rows in order, also of a region that is upside down
        inside, low, high, part = _sample(start, length, count, ahead, size)
        if inside:
            if end == 0:
                begin, end = low, low
            while end <= high:
                weights[end - begin] = float32(0)
                end += 1
            weights[low - begin] += float32(1) - part
            weights[high - begin] += part
    return begin, end - begin


def build() -> Any:
    """The mean of samples. Items are (region, row)."""

    @inline
    def pool(n, x, out, down, across, memory):
        height, width, channels = n[field.height], n[field.width], n[field.channels]
        by_row, by_column = floats(memory), floats(memory + BLOCK * 2)
        top, rows = _weights(down, height, by_row)
        left, columns = _weights(across, width, by_column)
        share = float32(max(down[2], int64(1))) * float32(max(across[2], int64(1)))
        x += (top * width + left) * channels * 4
        for c in range(0, channels, 4 * LANES):
            if c + 4 * LANES <= channels:
                one, two, three, four = splat(float32(0)), splat(float32(0)), splat(float32(0)), splat(float32(0))
                for i in range(rows):
                    at = x + (i * width * channels + c) * 4
                    for j in range(columns):
                        weight = splat(by_row[i] * by_column[j])
                        one, two = multiply_add(load(at, 0), weight, one), multiply_add(load(at, LANES), weight, two)
                        three = multiply_add(load(at, 2 * LANES), weight, three)
                        four = multiply_add(load(at, 3 * LANES), weight, four)
                        at += channels * 4
                store(divide(one, splat(share)), out, c)
                store(divide(two, splat(share)), out, c + LANES)
                store(divide(three, splat(share)), out, c + 2 * LANES)
                store(divide(four, splat(share)), out, c + 3 * LANES)
                continue
            for k in range(c, channels, LANES):
                total = splat(float32(0))
                for i in range(rows):
                    for j in range(columns):
                        weight = splat(by_row[i] * by_column[j])
                        value = load_first(x, (i * width + j) * channels + k, channels - k)
                        total = multiply_add(value, weight, total)
                store_first(divide(total, splat(share)), out, k, channels - k)

    return _regions(pool)


def largest() -> Any:
    """The largest weighted corner of all samples, as in the operator's first implementation. Items as above."""

    @inline
    def pool(n, x, out, down, across, memory):
        height, width, channels = n[field.height], n[field.width], n[field.channels]
        nothing = splat(float32(0) if down[2] == 0 or across[2] == 0 else -INFINITE)
        for c in range(0, channels, LANES):
            best = nothing
            for i in range(down[3], down[4]):
                above, low_y, high_y, part_y = _sample(down[0], down[1], down[2], i, height)
                for j in range(across[3], across[4]):
                    beside, low_x, high_x, part_x = _sample(across[0], across[1], across[2], j, width)
                    if not (above & beside):
                        best = larger_or_nan(best, splat(float32(0)))
                        continue
                    for corner in range(4):
                        y, by_y = (high_y, part_y) if corner & 2 else (low_y, float32(1) - part_y)
                        k, by_x = (high_x, part_x) if corner & 1 else (low_x, float32(1) - part_x)
                        value = load_first(x, (y * width + k) * channels + c, channels - c)
                        best = larger_or_nan(best, multiply(value, splat(by_y * by_x)))
            store_first(best, out, c, channels - c)

    return _regions(pool)


def _regions(pool: Any) -> Any:
    @inline
    def is_finite(value):
        return (value - value) == 0

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        regions, pictures, error = floats(n[field.regions]), int64s(n[field.pictures]), int64s(n[field.error])
        height, width, channels = n[field.height], n[field.width], n[field.channels]
        out_height, out_width, samples = n[field.out_height], n[field.out_width], n[field.samples]
        scale, half_pixel, memory = floats(n[field.scale])[0], n[field.is_half_pixel] != 0, stack_block()
        shift = float32(0.5) if half_pixel else float32(0)
        for item in range(begin, end):
            row, region = item % out_height, item // out_height
            picture, at = pictures[region], 4 * region
            if picture < 0 or picture >= n[field.count]:
                error[wrong.size], error[wrong.index], error[wrong.is_wrong] = n[field.count], picture, 1
                continue
            x0, y0 = regions[at] * scale - shift, regions[at + 1] * scale - shift
            x1, y1 = regions[at + 2] * scale - shift, regions[at + 3] * scale - shift
            if not (is_finite(x0) & is_finite(y0) & is_finite(x1) & is_finite(y1)):
                error[wrong.index], error[wrong.is_wrong] = region, NOT_FINITE
                continue
            down = _element(y0, y1, row, out_height, height, samples, half_pixel)
            x = n[field.x] + picture * height * width * channels * 4
            for column in range(out_width):
                across = _element(x0, x1, column, out_width, width, samples, half_pixel)
                out = n[field.out] + (item * out_width + column) * channels * 4
                pool(n, x, out, down, across, memory)

    return kernel
