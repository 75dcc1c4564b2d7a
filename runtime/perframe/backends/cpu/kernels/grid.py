"""Sampling of pictures at the points of grids."""

from __future__ import annotations

from math import floor, isnan
from typing import Any

from numba import float32, int64

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.fields import GRID, GRID_TAPS
from perframe.backends.cpu.kernels.memory import floats, int32s, int64s

ZEROS, BORDER, REFLECTION = 0, 1, 2
PLANES = 4  # so many are sampled together, because they share the taps
FAR = 2.0**30  # a coordinate beyond this samples like an infinite one, and still fits into an int64


@inline
def _reflected(at, low, high):
    """A coordinate, reflected at the borders until it lies between them."""
    length = high - low
    if length <= float32(0):
        return low
    before = at < low
    beyond = low - at if before else at - high
    times = floor(beyond / length)
    rest = beyond - float32(times) * length
    is_even = int64(times) % 2 == 0
    return low + rest if before == is_even else high - rest


@inline
def _coordinate(at, size, align_corners, is_nearest, padding):
    """Where a point lies along an axis, in elements; an integer for the nearest element."""
    last = float32(size - 1)
    if align_corners:
        where = (at + float32(1)) / float32(2) * last
    else:
        where = ((at + float32(1)) * float32(size) - float32(1)) / float32(2)
    if isnan(where) or where < float32(-FAR):
        where = float32(-FAR)
    elif where > float32(FAR):
        where = float32(FAR)
    if is_nearest:  # halves go to the even element
        below = float32(floor(where))
        part = where - below
        is_odd = int64(below) % 2 != 0
        where = below + float32(1) if part > float32(0.5) or (part == float32(0.5) and is_odd) else below
    low, high = (float32(0), last) if align_corners else (float32(-0.5), last + float32(0.5))
    if where < low or where > high:
        if padding == BORDER:
            where = min(max(where, float32(0)), last)
        elif padding == REFLECTION:
            where = _reflected(where, low, high)
    return where


@inline
def _element(at, size, align_corners, padding):
    """The index of the element at a whole coordinate; -1 where there is none."""
    last = float32(size - 1)
    if padding == REFLECTION:
        low, high = (float32(0), last) if align_corners else (float32(-0.5), last + float32(0.5))
        if at < low or at > high:
            at = _reflected(at, low, high)
    index = int64(at)
    if padding == ZEROS:
        return index if 0 <= index < size else int64(-1)
    return min(max(index, 0), size - 1)


def taps() -> Any:
    """Where each point lies: the indices of its elements in a plane, -1 for none, and their weights. Items are points.

    A picture has its points in a row for each tap.
    """
    field = GRID_TAPS.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        grid, indices, weights = floats(n[field.grid]), int32s(n[field.indices]), floats(n[field.weights])
        is_nearest, padding, align_corners = n[field.is_nearest], n[field.padding], n[field.align_corners]
        height, width, points = n[field.height], n[field.width], n[field.points]
        count = 1 if is_nearest else 2
        for item in range(begin, end):
            across = _coordinate(grid[2 * item], width, align_corners, is_nearest, padding)
            down = _coordinate(grid[2 * item + 1], height, align_corners, is_nearest, padding)
            left, top = float32(floor(across)), float32(floor(down))
            right, bottom = across - left, down - top
            at = item // points * count * count * points + item % points
            for k in range(count):
                row = _element(top + float32(k), height, align_corners, padding)
                upright = bottom if k else float32(1) - bottom
                for j in range(count):
                    column = _element(left + float32(j), width, align_corners, padding)
                    indices[at] = row * width + column if row >= 0 and column >= 0 else -1
                    weights[at] = upright * (right if j else float32(1) - right)
                    at += points

    return kernel


@inline
def _sample(plane, size, out, points, indices, weights, p, count, planes):
    """One point of so many planes, which share its taps."""
    first = second = third = fourth = float32(0)
    for k in range(count):
        index, weight = indices[p + k * points], weights[p + k * points]
        if index < 0:
            continue
        first += weight * plane[index]
        if planes == PLANES:
            second += weight * plane[index + size]
            third += weight * plane[index + 2 * size]
            fourth += weight * plane[index + 3 * size]
    out[p] = first
    if planes == PLANES:
        out[p + points], out[p + 2 * points], out[p + 3 * points] = second, third, fourth


def build() -> Any:
    """The samples of each plane, by the taps of its picture. Items are planes."""
    field = GRID.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        size, points, channels, count = n[field.size], n[field.points], n[field.channels], n[field.taps]
        item = begin
        while item < end:
            x, out = floats(n[field.x] + item * size * 4), floats(n[field.out] + item * points * 4)
            taken = item // channels * count * points * 4
            indices, weights = int32s(n[field.indices] + taken), floats(n[field.weights] + taken)
            planes = PLANES if min(end - item, channels - item % channels) >= PLANES else 1
            if planes == PLANES and count == 4:
                for p in range(points):
                    _sample(x, size, out, points, indices, weights, p, 4, PLANES)
            elif planes == PLANES:
                for p in range(points):
                    _sample(x, size, out, points, indices, weights, p, 1, PLANES)
            elif count == 4:
                for p in range(points):
                    _sample(x, size, out, points, indices, weights, p, 4, 1)
            else:
                for p in range(points):
                    _sample(x, size, out, points, indices, weights, p, 1, 1)
            item += planes

    return kernel
