"""Convolution of each channel of bytes by itself; the channels are the last dim.

A vector of channels at a time: what a band of output rows needs of the input becomes float32 once, without its zero
point, and with zeros around it. Whole numbers below 2^24 are exact there, and are multiplied in half the time of int32.
Where the channels end inside a vector, it begins earlier and overlaps.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.fields import BYTE_DEPTHWISE
from perframe.backends.cpu.kernels.memory import bools, floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import load, load_first, multiply_add, splat, stack_block, store
from perframe.backends.cpu.kernels.whole_vector import (
    add_whole,
    between,
    load_signed,
    load_signed_first,
    load_unsigned,
    load_unsigned_first,
    load_whole_first,
    nearest,
    real,
    splat_whole,
    store_bytes,
    subtract_whole,
    truncated,
)

TILE = 8  # output pixels whose sums are in registers at once


@inline
def _eight(x, step, across, pitch, w, channels, count, ky, kx):
    """Sums of eight neighbouring pixels, whose inputs lie `step` apart."""
    zero = splat(float32(0))
    a0, a1, a2, a3, a4, a5, a6, a7 = zero, zero, zero, zero, zero, zero, zero, zero
    for i in range(ky):
        for j in range(kx):
            weight, at = load_first(w, (i * kx + j) * channels, count), i * pitch + j * across
            a0 = multiply_add(weight, load(x, at), a0)
            a1 = multiply_add(weight, load(x, at + step), a1)
            a2 = multiply_add(weight, load(x, at + 2 * step), a2)
            a3 = multiply_add(weight, load(x, at + 3 * step), a3)
            a4 = multiply_add(weight, load(x, at + 4 * step), a4)
            a5 = multiply_add(weight, load(x, at + 5 * step), a5)
            a6 = multiply_add(weight, load(x, at + 6 * step), a6)
            a7 = multiply_add(weight, load(x, at + 7 * step), a7)
    return a0, a1, a2, a3, a4, a5, a6, a7


@inline
def _finish(total, base, factor, offset, low, high, zero, out, at, count):
    """Sums become bytes."""
    value = multiply_add(real(add_whole(truncated(total), base)), factor, offset)
    store_bytes(add_whole(nearest(between(value, low, high)), zero), out, at, count)


def build(signed: bool) -> Any:
    """Items are (batch, band of output rows, block of channels); a band has `band` rows."""
    field = BYTE_DEPTHWISE.at
    load_bytes, load_part = (load_signed, load_signed_first) if signed else (load_unsigned, load_unsigned_first)
    shift = 256 if signed else 0

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, limits, band = n[field.x], n[field.out], floats(n[field.limits]), n[field.band]
        height, width, out_height = n[field.height], n[field.width], n[field.out_height]
        out_width, ky, kx = n[field.out_width], n[field.kernel_y], n[field.kernel_x]
        sy, sx, dy, dx = n[field.stride_y], n[field.stride_x], n[field.dilation_y], n[field.dilation_x]
        py, px, channels = n[field.pad_y], n[field.pad_x], n[field.channels]
        zero = int(bools(n[field.x_zero])[0])
        if zero > 127:
            zero -= shift
        low, high, y_zero = splat(limits[0]), splat(limits[1]), splat_whole(int(bools(n[field.y_zero])[0]))
        x_zero, none = splat_whole(zero), splat(float32(0))
        count, blocks, bands = min(LANES, channels), (channels + LANES - 1) // LANES, (out_height + band - 1) // band
        wide = (out_width - 1) * sx + (kx - 1) * dx + 1
        inside, outside = min(wide, px), max(px, min(wide, width + px))
        memory = stack_block()
        for item in range(begin, end):
            c, rest = max(0, min(item % blocks * LANES, channels - LANES)), item // blocks
            image, first = rest // bands, rest % bands * band
            last = min(out_height, first + band)
            for r in range((last - first - 1) * sy + (ky - 1) * dy + 1):
                y, line = first * sy - py + r, memory + r * wide * LANES * 4
                is_row = y >= 0 and y < height
                for p in range(wide):
                    if is_row and p >= inside and p < outside:
                        at = ((image * height + y) * width + p - px) * channels + c
                        value = load_bytes(x, at) if count == LANES else load_part(x, at, count)
                        store(real(subtract_whole(value, x_zero)), line, p * LANES)
                    else:
                        store(none, line, p * LANES)
            base, factor = load_whole_first(n[field.bias], c, count), load_first(n[field.factors], c, count)
            offset, w = load_first(n[field.offsets], c, count), n[field.weights] + c * 4
            step, across, pitch = sx * LANES, dx * LANES, dy * wide * LANES
            for oy in range(first, last):
                given = memory + (oy - first) * sy * wide * LANES * 4
                line = out + ((image * out_height + oy) * out_width * channels + c)
                whole = out_width - out_width % TILE
                for ox in range(0, whole, TILE):
                    a0, a1, a2, a3, a4, a5, a6, a7 = _eight(
                        given + ox * step * 4, step, across, pitch, w, channels, count, ky, kx
                    )
                    at = ox * channels
                    _finish(a0, base, factor, offset, low, high, y_zero, line, at, count)
                    _finish(a1, base, factor, offset, low, high, y_zero, line, at + channels, count)
                    _finish(a2, base, factor, offset, low, high, y_zero, line, at + 2 * channels, count)
                    _finish(a3, base, factor, offset, low, high, y_zero, line, at + 3 * channels, count)
                    _finish(a4, base, factor, offset, low, high, y_zero, line, at + 4 * channels, count)
                    _finish(a5, base, factor, offset, low, high, y_zero, line, at + 5 * channels, count)
                    _finish(a6, base, factor, offset, low, high, y_zero, line, at + 6 * channels, count)
                    _finish(a7, base, factor, offset, low, high, y_zero, line, at + 7 * channels, count)
                for ox in range(whole, out_width):
                    total = none
                    for i in range(ky):
                        for j in range(kx):
                            value = load(given, ox * step + i * pitch + j * across)
                            total = multiply_add(load_first(w, (i * kx + j) * channels, count), value, total)
                    _finish(total, base, factor, offset, low, high, y_zero, line, ox * channels, count)

    return kernel
