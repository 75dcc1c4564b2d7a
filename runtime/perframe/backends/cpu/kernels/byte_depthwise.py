"""Convolution of each channel of bytes by itself; the channels are the last dim.

An item takes a vector of channels. First it copies the input that its band of output rows needs, as float32 without the
zero point, and with zeros around it. float32 holds integers below 2^24 exactly, and multiplies them in half the
time of int32.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.depthwise_tile import TILE
from perframe.backends.cpu.kernels.fields import BYTE_DEPTHWISE
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import bools, floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import (
    begin_of_vector,
    load,
    load_first,
    multiply_add,
    splat,
    stack_block,
    store,
)
from perframe.backends.cpu.kernels.whole_vector import (
    add_whole,
    between,
    byte_loader,
    load_whole_first,
    nearest,
    real,
    splat_whole,
    store_bytes,
    subtract_whole,
    truncated,
)
from perframe.backends.cpu.kernels.window import window_of


@inline
def _eight(x, step, across, pitch, w, channels, count, ky, kx):
    """The sums of TILE neighboring pixels, whose inputs lie `step` apart."""
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
    load_bytes, shift = byte_loader(signed), 256 if signed else 0

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, limits, band = n[field.x], n[field.out], floats(n[field.limits]), n[field.band]
        height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
        channels = n[field.channels]
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
            c, rest = begin_of_vector(item % blocks * LANES, channels), item // blocks
            image, first = rest // bands, rest % bands * band
            last = min(out_height, first + band)
            for r in range((last - first - 1) * sy + (ky - 1) * dy + 1):
                y, line = first * sy - py + r, memory + r * wide * LANES * 4
                is_row = y >= 0 and y < height
                for p in range(wide):
                    if is_row and p >= inside and p < outside:
                        at = ((image * height + y) * width + p - px) * channels + c
                        store(real(subtract_whole(load_bytes(x, at, count), x_zero)), line, p * LANES)
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
