"""Windows and planes of bytes whose channels are the last dim: the largest, and averages that are quantized again.

Vectors run along the channels.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import BYTE_MEAN, BYTE_POOL
from perframe.backends.cpu.kernels.memory import floats, int32s, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import begin_of_vector, multiply_add, splat
from perframe.backends.cpu.kernels.whole_vector import (
    add_whole,
    between,
    byte_loader,
    larger_whole,
    nearest,
    real,
    splat_whole,
    store_bytes,
)
from perframe.backends.cpu.kernels.window import reach, window_of


def largest(signed: bool) -> Any:
    """Items are (batch, output row)."""
    field = BYTE_POOL.at
    load_bytes, least = byte_loader(signed), -128 if signed else 0

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, channels = n[field.x], n[field.out], n[field.channels]
        height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
        count = min(LANES, channels)
        for item in range(begin, end):
            top = item % out_height * sy - py
            image = x + (item // out_height * height + top) * width * channels
            i0, i1 = reach(top, ky, dy, height)
            for column in range(out_width):
                left = column * sx - px
                j0, j1 = reach(left, kx, dx, width)
                to = (item * out_width + column) * channels
                for block in range(0, channels, LANES):
                    c, most = begin_of_vector(block, channels), splat_whole(least)
                    for i in range(i0, i1):
                        for j in range(j0, j1):
                            at = (i * dy * width + left + j * dx) * channels + c
                            most = larger_whole(most, load_bytes(image, at, count))
                    store_bytes(most, out, to + c, count)

    return kernel


def mean(signed: bool) -> Any:
    """The average of all pixels of each image, quantized again: items are (batch, block of channels).

    `zeros` are the zero points of x and y.
    """
    field = BYTE_MEAN.at
    load_bytes = byte_loader(signed)
    least, most = (-128, 127) if signed else (0, 255)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, pixels, channels = n[field.x], n[field.out], n[field.pixels], n[field.channels]
        zeros = int32s(n[field.zeros])
        blocks = (channels + LANES - 1) // LANES
        factor, none = splat(floats(n[field.factor])[0]), splat(float32(0))
        base, y_zero = splat_whole(-int(zeros[0]) * pixels), splat_whole(int(zeros[1]))
        low, high = splat(float32(least - zeros[1])), splat(float32(most - zeros[1]))
        for item in range(begin, end):
            image, block = item // blocks, item % blocks
            c, count = begin_of_vector(block * LANES, channels), min(LANES, channels)
            total = base
            for pixel in range(pixels):
                at = (image * pixels + pixel) * channels + c
                total = add_whole(total, load_bytes(x, at, count))
            value = between(multiply_add(real(total), factor, none), low, high)
            store_bytes(add_whole(nearest(value), y_zero), out, image * channels + c, count)

    return kernel
