"""Convolution of each channel by itself, and pooling: windows over data whose channels are the last dim.

Vectors run along the channels; where these end inside one, the last vector begins earlier and overlaps.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.memory import call_kernel, floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import (
    add,
    at_least,
    at_most,
    divide,
    larger_or_nan,
    load,
    load_first,
    multiply_add,
    splat,
    stack_numbers,
    store,
    store_first,
)

TILE = 8  # output pixels whose sums are in registers at once


@inline
def _eight(x, step, w, across, pitch, channels, rows, kx, start):
    """Sums of eight neighbouring pixels, whose inputs lie `step` apart; all taps lie inside the input."""
    a0, a1, a2, a3, a4, a5, a6, a7 = start, start, start, start, start, start, start, start
    for i in range(rows):
        line, weights = x + i * pitch * 4, w + i * kx * channels * 4
        for j in range(kx):
            weight, at = load(weights, j * channels), j * across
            a0 = multiply_add(weight, load(line, at), a0)
            a1 = multiply_add(weight, load(line, at + step), a1)
            a2 = multiply_add(weight, load(line, at + 2 * step), a2)
            a3 = multiply_add(weight, load(line, at + 3 * step), a3)
            a4 = multiply_add(weight, load(line, at + 4 * step), a4)
            a5 = multiply_add(weight, load(line, at + 5 * step), a5)
            a6 = multiply_add(weight, load(line, at + 6 * step), a6)
            a7 = multiply_add(weight, load(line, at + 7 * step), a7)
    return a0, a1, a2, a3, a4, a5, a6, a7


def build() -> Any:
    """Items are (batch, output row).

    [x, w, bias, out, limits, finish, its parameters, height, width, out height, width, kernel y, x, stride y, x,
    dilation y, x, pad y, x, channels, pitch of x, out, offset in x, in out]
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, w, bias, out, limits, finish = n[0], n[1], n[2], n[3], floats(n[4]), n[5]
        height, width, out_height, out_width, ky, kx = n[7], n[8], n[9], n[10], n[11], n[12]
        sy, sx, dy, dx, py, px, channels, x_pitch, out_pitch = (
            n[13], n[14], n[15], n[16], n[17], n[18], n[19], n[20], n[21],
        )  # fmt: skip
        low, high = splat(limits[0]), splat(limits[1])
        count = min(LANES, channels)
        # pixels whose taps all lie inside a row
        inside = min(out_width, (px + sx - 1) // sx)
        outside = max(inside, min(out_width, (width + px - (kx - 1) * dx - 1) // sx + 1))
        tail_numbers = stack_numbers()
        tail = int64s(tail_numbers)
        for item in range(begin, end):
            top = item % out_height * sy - py
            first = (-top + dy - 1) // dy if top < 0 else 0
            last = min(ky, (height - top + dy - 1) // dy)
            image = x + n[22] * 4 + (item // out_height * height + top) * width * x_pitch * 4
            line = out + n[23] * 4 + item * out_width * out_pitch * 4
            for block in range(0, channels, LANES):
                c = max(0, min(block, channels - LANES))
                start = load_first(bias, c, count)
                column = 0
                while column < out_width:
                    at = image + ((column * sx - px) * x_pitch + c) * 4
                    to = column * out_pitch + c
                    if column >= inside and column + TILE <= outside and count == LANES:
                        a0, a1, a2, a3, a4, a5, a6, a7 = _eight(
                            at + first * dy * width * x_pitch * 4,
                            sx * x_pitch,
                            w + (first * kx * channels + c) * 4,
                            dx * x_pitch,
                            dy * width * x_pitch,
                            channels,
                            last - first,
                            kx,
                            start,
                        )
                        store(at_most(at_least(a0, low), high), line, to)
                        store(at_most(at_least(a1, low), high), line, to + out_pitch)
                        store(at_most(at_least(a2, low), high), line, to + 2 * out_pitch)
                        store(at_most(at_least(a3, low), high), line, to + 3 * out_pitch)
                        store(at_most(at_least(a4, low), high), line, to + 4 * out_pitch)
                        store(at_most(at_least(a5, low), high), line, to + 5 * out_pitch)
                        store(at_most(at_least(a6, low), high), line, to + 6 * out_pitch)
                        store(at_most(at_least(a7, low), high), line, to + 7 * out_pitch)
                        column += TILE
                        continue
                    total = start
                    left = column * sx - px
                    for i in range(first, last):
                        for j in range(kx):
                            if left + j * dx >= 0 and left + j * dx < width:
                                value = load_first(at, (i * dy * width + j * dx) * x_pitch, count)
                                total = multiply_add(load_first(w, (i * kx + j) * channels + c, count), value, total)
                    store_first(at_most(at_least(total, low), high), line, to, count)
                    column += 1
            if finish:
                tail[0], tail[1], tail[2], tail[3] = line, out_pitch, channels, n[6]
                call_kernel(finish, tail_numbers, 0, out_width)

    return kernel


@inline
def _reach(start, kernel, dilation, size):
    """The first tap inside the input, and one past the last."""
    first = (-start + dilation - 1) // dilation if start < 0 else 0
    return first, max(first, min(kernel, (size - start + dilation - 1) // dilation))


def _pool(average: bool) -> Any:
    def build() -> Any:
        """Items are (batch, output row).

        [x, out, count padding, height, width, out height, width, kernel y, x, stride y, x, dilation y, x, pad y, x,
        end pad y, x, channels, pitch of x, out, offset in x, in out]
        """

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, counting = n[0], n[1], n[2]
            height, width, out_height, out_width, ky, kx = n[3], n[4], n[5], n[6], n[7], n[8]
            sy, sx, dy, dx, py, px, qy, qx = n[9], n[10], n[11], n[12], n[13], n[14], n[15], n[16]
            channels, x_pitch, out_pitch = n[17], n[18], n[19]
            count = min(LANES, channels)
            for item in range(begin, end):
                top = item % out_height * sy - py
                image = x + n[20] * 4 + item // out_height * height * width * x_pitch * 4
                line = out + n[21] * 4 + item * out_width * out_pitch * 4
                i0, i1 = _reach(top, ky, dy, height)
                for column in range(out_width):
                    left = column * sx - px
                    j0, j1 = _reach(left, kx, dx, width)
                    taps = (i1 - i0) * (j1 - j0)
                    if counting:
                        taps = _reach(top, ky, dy, height + qy)[1] * _reach(left, kx, dx, width + qx)[1]
                    share = splat(float32(taps))
                    corner = image + (top * width + left) * x_pitch * 4
                    for block in range(0, channels, LANES):
                        c = max(0, min(block, channels - LANES))
                        total = splat(float32(0 if average else -math.inf))
                        if count == LANES:
                            for i in range(i0, i1):
                                for j in range(j0, j1):
                                    value = load(corner, (i * dy * width + j * dx) * x_pitch + c)
                                    total = add(total, value) if average else larger_or_nan(total, value)
                        else:
                            for i in range(i0, i1):
                                for j in range(j0, j1):
                                    value = load_first(corner, (i * dy * width + j * dx) * x_pitch, count)
                                    total = add(total, value) if average else larger_or_nan(total, value)
                        if average:
                            total = divide(total, share)
                        store_first(total, line, column * out_pitch + c, count)

        return kernel

    return build


average, largest = _pool(True), _pool(False)
