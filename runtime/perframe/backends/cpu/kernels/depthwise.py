"""Convolution of each channel by itself, and pooling: windows over data whose channels are the last dim.

Vectors run along the channels.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.depthwise_tile import (
    TILE,
    LineEnds,
    TileInput,
    TilePixels,
    TileTaps,
    depthwise_tile,
    kind_of,
)
from perframe.backends.cpu.kernels.fields import DEPTHWISE, LINES_POOL
from perframe.backends.cpu.kernels.finish import finish_rows
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.sizes import BLOCK, LANES
from perframe.backends.cpu.kernels.vector import (
    add,
    at_least,
    at_most,
    begin_of_vector,
    divide,
    larger_or_nan,
    load,
    load_first,
    multiply_add,
    splat,
    stack_block,
    stack_numbers,
    store,
    store_first,
    zero_floats,
)
from perframe.backends.cpu.kernels.window import reach, window_of, window_z_of

field = DEPTHWISE.at
ROOM = BLOCK // LANES  # pixels of a patch on the stack, at the most


@inline
def _copy_patch(block, line, left, step, width, pitch, rows, wide, count):
    """Copy a vector of channels of all pixels that the taps of a tile reach. Pixels outside a line are zero."""
    first = min(wide, max(0, -left))
    last = max(first, min(wide, width - left))
    zero = splat(float32(0))
    for i in range(rows):
        to, at = block + i * wide * LANES * 4, line + (i * step + left * pitch) * 4
        for column in range(first):
            store(zero, to, column * LANES)
        if count == LANES:
            for column in range(first, last):
                store(load(at, column * pitch), to, column * LANES)
        else:
            for column in range(first, last):
                store(load_first(at, column * pitch, count), to, column * LANES)
        for column in range(last, wide):
            store(zero, to, column * LANES)


def build() -> Any:
    """Items are (batch, z, output row)."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, w, bias, out, limits = n[field.x], n[field.weights], n[field.bias], n[field.out], floats(n[field.limits])
        finish, parameters = n[field.finish], n[field.parameters]
        height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
        size_z, out_z, kz, sz, dz, pz = window_z_of(n, field.size_z)
        channels, x_pitch, out_pitch = n[field.channels], n[field.x_pitch], n[field.out_pitch]
        low, high = limits[0], limits[1]
        count, w_pitch = min(LANES, channels), max(LANES, channels)
        # all taps of these pixels lie inside a row
        inside = min(out_width, (px + sx - 1) // sx)
        outside = max(inside, min(out_width, (width + px - (kx - 1) * dx - 1) // sx + 1))
        pixels, down = min(TILE, out_width), dy * width * x_pitch
        wide = (TILE - 1) * sx + (kx - 1) * dx + 1
        block, finish_numbers = stack_block(), stack_numbers()
        shared = kind_of(kx, sx, dx)
        for item in range(begin, end):
            top, rest = item % out_height * sy - py, item // out_height
            front = rest % out_z * sz - pz
            first, last = reach(top, ky, dy, height)
            z0, z1 = reach(front, kz, dz, size_z)
            # a patch of several planes has all rows of taps, so that the weights of all planes are one run
            before, after = (0, 0) if kz == 1 else (first, ky - last)
            rows, from_tap = (z1 - z0) * (last - first + before + after), (z0 * ky + first - before) * kx
            plane = (rest // out_z * size_z + front + z0 * dz) * height
            image = x + n[field.x_offset] * 4 + (plane + top + first * dy) * width * x_pitch * 4
            line = out + n[field.out_offset] * 4 + item * out_width * out_pitch * 4
            for channel in range(0, channels, LANES):
                c = begin_of_vector(channel, channels)
                for tile in range(0, out_width, TILE):
                    # the last tile of a row begins earlier, and computes some pixels again
                    column = min(tile, out_width - pixels)
                    left = column * sx - px
                    at, step, across, stride = image + (left * x_pitch + c) * 4, sx * x_pitch, dx * x_pitch, down
                    kind, at_end = shared, column < inside or column + TILE > outside
                    if shared and at_end and count == LANES and kz == 1:
                        kind = shared + 1
                    elif at_end or count < LANES or kz > 1:
                        if wide * rows > ROOM:
                            _pixel_by_pixel(n, image + c * 4, line + c * 4, c, column, pixels, first, last, z0, z1)
                            continue
                        if before + after:
                            zero_floats(block, rows * wide * LANES)
                        for z in range(z1 - z0):
                            to = block + (z * ky + before) * wide * LANES * 4
                            source = image + (z * dz * height * width * x_pitch + c) * 4
                            _copy_patch(to, source, left, down, width, x_pitch, last - first, wide, count)
                        at, step, across, stride = block, sx * LANES, dx * LANES, wide * LANES
                    depthwise_tile(
                        TileInput(at, step, across, stride),
                        TileTaps(rows, kx, w + (from_tap * w_pitch + c) * 4, w_pitch),
                        TilePixels(line + (column * out_pitch + c) * 4, out_pitch, pixels, count),
                        (bias + c * 4, low, high),
                        LineEnds(left, dx, width),
                        kind,
                    )
            if finish:
                finish_rows(finish, finish_numbers, line, out_pitch, channels, parameters, out_width)

    return kernel


@inline
def _pixel_by_pixel(n, x, out, c, begin, pixels, first, last, z0, z1):
    """Compute a few pixels of a line whose taps reach too far for a patch."""
    height, width, _, _, ky, kx, _, sx, dy, dx, _, px = window_of(n, field.height)
    planes = n[field.dilation_z] * height * width
    channels, pitch = n[field.channels], n[field.x_pitch]
    count, w_pitch, limits = min(LANES, channels), max(LANES, channels), floats(n[field.limits])
    for column in range(begin, begin + pixels):
        total = load_first(n[field.bias], c, count)
        for z in range(z0, z1):
            for i in range(first, last):
                for j in range(kx):
                    at = column * sx - px + j * dx
                    if at >= 0 and at < width:
                        value = load_first(x, ((z - z0) * planes + (i - first) * dy * width + at) * pitch, count)
                        weight = load(n[field.weights], ((z * ky + i) * kx + j) * w_pitch + c)
                        total = multiply_add(weight, value, total)
        total = at_most(at_least(total, splat(limits[0])), splat(limits[1]))
        store_first(total, out, column * n[field.out_pitch], count)


def _pool(average: bool) -> Any:
    field = LINES_POOL.at
    join, nothing = add if average else larger_or_nan, float32(0 if average else -math.inf)

    def build() -> Any:
        """Items are (batch, z, output row)."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, counting = n[field.x], n[field.out], n[field.counts_padding]
            height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
            size_z, out_z, kz, sz, dz, pz = window_z_of(n, field.size_z)
            qz, qy, qx = n[field.end_z], n[field.end_y], n[field.end_x]
            channels, x_pitch, out_pitch = n[field.channels], n[field.x_pitch], n[field.out_pitch]
            for item in range(begin, end):
                top, rest = item % out_height * sy - py, item // out_height
                front, batch = rest % out_z * sz - pz, rest // out_z
                image = x + n[field.x_offset] * 4 + (batch * size_z + front) * height * width * x_pitch * 4
                line = out + n[field.out_offset] * 4 + item * out_width * out_pitch * 4
                i0, i1 = reach(top, ky, dy, height)
                z0, z1 = reach(front, kz, dz, size_z)
                lines = (z1 - z0) * (i1 - i0)
                if counting:
                    lines = reach(front, kz, dz, size_z + qz)[1] * reach(top, ky, dy, height + qy)[1]
                for column in range(out_width):
                    left = column * sx - px
                    j0, j1 = reach(left, kx, dx, width)
                    taps = reach(left, kx, dx, width + qx)[1] if counting else j1 - j0
                    share = splat(float32(lines * taps))
                    corner = image + (top * width + left) * x_pitch * 4
                    for c in range(0, channels, 2 * LANES):
                        at, beside = min(c, channels - LANES), min(c + LANES, channels - LANES)
                        total, other = splat(nothing), splat(nothing)
                        for z in range(z0, z1):
                            for i in range(i0, i1):
                                tap = corner + ((z * dz * height + i * dy) * width + j0 * dx) * x_pitch * 4
                                if channels >= LANES:
                                    for _ in range(j0, j1):
                                        total, other = join(total, load(tap, at)), join(other, load(tap, beside))
                                        tap += dx * x_pitch * 4
                                else:
                                    for _ in range(j0, j1):
                                        total = join(total, load_first(tap, 0, channels))
                                        tap += dx * x_pitch * 4
                        if average:
                            total, other = divide(total, share), divide(other, share)
                        if channels >= LANES:
                            store(total, line, column * out_pitch + at)
                            store(other, line, column * out_pitch + beside)
                        else:
                            store_first(total, line, column * out_pitch, channels)

        return kernel

    return build


average, largest = _pool(True), _pool(False)
