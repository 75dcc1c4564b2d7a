"""Floats to bytes and back, with one scale for a tensor; and the scale that follows from a tensor's own range.

Items are pieces of `piece` elements.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import EXTENT, OWN_RANGE, QUANTIZE
from perframe.backends.cpu.kernels.memory import bools, floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import (
    at_least,
    at_most,
    divide,
    load,
    load_first,
    splat,
    store,
    store_first,
)
from perframe.backends.cpu.kernels.whole_vector import (
    add_whole,
    between,
    byte_loader,
    multiply,
    nearest,
    real,
    splat_whole,
    store_bytes,
    subtract_whole,
)


def quantize(signed: bool) -> Any:
    """Items are pieces of `piece` elements."""
    field = QUANTIZE.at
    low, high = (-128, 127) if signed else (0, 255)
    shift = 256 if signed else 0

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, elements, piece = n[field.x], n[field.out], n[field.elements], n[field.piece]
        zero = int(bools(n[field.zero])[0])
        if zero > high:
            zero -= shift
        scale, zeros = splat(floats(n[field.scale])[0]), splat_whole(zero)
        least, most = splat(float32(low - zero)), splat(float32(high - zero))
        for i in range(begin * piece, min(elements, end * piece), LANES):
            count = min(LANES, elements - i)
            value = between(divide(load_first(x, i, count), scale), least, most)
            store_bytes(add_whole(nearest(value), zeros), out, i, count)

    return kernel


def dequantize(signed: bool) -> Any:
    """Items are pieces of `piece` elements."""
    field = QUANTIZE.at
    load_bytes, shift = byte_loader(signed), 256 if signed else 0

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, elements, piece = n[field.x], n[field.out], n[field.elements], n[field.piece]
        zero = int(bools(n[field.zero])[0])
        if zero > 127:
            zero -= shift
        scale, zeros = splat(floats(n[field.scale])[0]), splat_whole(zero)
        for i in range(begin * piece, min(elements, end * piece), LANES):
            count = min(LANES, elements - i)
            whole = subtract_whole(load_bytes(x, i, count), zeros)
            store_first(multiply(real(whole), scale), out, i, count)

    return kernel


def extent() -> Any:
    """A vector of the smallest elements of each piece, and a vector of the largest."""
    field = EXTENT.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, pairs, elements, piece = n[field.x], n[field.pairs], n[field.elements], n[field.piece]
        none = splat(float32(0))
        for item in range(begin, end):
            stop = min(elements, (item + 1) * piece)
            low, high, more_low, more_high = none, none, none, none
            i = item * piece
            while i + 2 * LANES <= stop:
                first, second = load(x, i), load(x, i + LANES)
                low, high = at_most(first, low), at_least(first, high)
                more_low, more_high = at_most(second, more_low), at_least(second, more_high)
                i += 2 * LANES
            while i < stop:
                value = load_first(x, i, min(LANES, stop - i))
                low, high = at_most(value, low), at_least(value, high)
                i += LANES
            store(at_most(more_low, low), pairs, 2 * item * LANES)
            store(at_least(more_high, high), pairs, (2 * item + 1) * LANES)

    return kernel


def own_range() -> Any:
    """The scale that spreads the range of all pieces over 8 bits, and its zero point.

    If all elements are zero, the scale is 1/255, as in ONNX's evaluator; the standard's own function gives 0.
    """
    field = OWN_RANGE.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        pairs, scale, zero = floats(n[field.pairs]), floats(n[field.scale]), bools(n[field.zero])
        low, high = float32(0), float32(0)
        for i in range(n[field.pieces] * 2 * LANES):
            low, high = min(low, pairs[i]), max(high, pairs[i])
        width = high - low
        scale[0] = (float32(1) if width == 0 else width) / float32(255)
        zero[0] = round(min(max(-(low / scale[0]), float32(0)), float32(255)))

    return kernel
