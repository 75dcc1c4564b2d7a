"""Floats to bytes and back, with scales for the tensor, its rows or its columns; and the scale of a tensor's range."""

from __future__ import annotations

from typing import Any

from numba import float32, int64

from perframe.backends.cpu.kernels.fields import EXTENT, OWN_RANGE, QUANTIZE, QUANTIZE_COLUMNS
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import POINTERS, bools, floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import (
    at_least,
    at_most,
    divide,
    load,
    load_first,
    multiply,
    splat,
    store,
    store_first,
    subtract,
)
from perframe.backends.cpu.kernels.whole_vector import (
    add_whole,
    between,
    byte_loader,
    nearest,
    real,
    splat_whole,
    store_bytes,
    subtract_whole,
)


def _quantizer(signed: bool) -> Any:
    """The helper that quantizes `count` elements."""
    least, most = (-128, 127) if signed else (0, 255)

    @inline
    def convert(x, out, i, count, scale, zeros):
        low, high = subtract(splat(float32(least)), real(zeros)), subtract(splat(float32(most)), real(zeros))
        value = between(divide(load_first(x, i, count), scale), low, high)
        store_bytes(add_whole(nearest(value), zeros), out, i, count)

    return convert


def _dequantizer(signed: bool) -> Any:
    """The helper that makes floats of `count` bytes."""
    load_bytes = byte_loader(signed)

    @inline
    def convert(x, out, i, count, scale, zeros):
        store_first(multiply(real(subtract_whole(load_bytes(x, i, count), zeros)), scale), out, i, count)

    return convert


def _by_rows(converter: Any) -> Any:
    field = QUANTIZE.at

    def build(signed: bool) -> Any:
        """A number for each row. Items are chunks of rows."""
        convert, pointer = converter(signed), POINTERS["int8" if signed else "uint8"]

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, inner = n[field.x], n[field.out], n[field.inner]
            chunks, chunk = n[field.chunks], n[field.chunk]
            for item in range(begin, end):
                row, first = item // chunks, item % chunks * chunk
                zeros = splat_whole(int64(pointer(n[field.zero])[row % n[field.size]]))
                scale = splat(floats(n[field.scale])[row % n[field.size]])
                for i in range(row * inner + first, row * inner + min(inner, first + chunk), LANES):
                    convert(x, out, i, min(LANES, (row + 1) * inner - i), scale, zeros)

        return kernel

    return build


def _by_columns(converter: Any) -> Any:
    field = QUANTIZE_COLUMNS.at

    def build(signed: bool) -> Any:
        """A number for each column. Items are rows."""
        convert, load_bytes = converter(signed), byte_loader(signed)

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, size = n[field.x], n[field.out], n[field.size]
            for row in range(begin, end):
                for i in range(0, size, LANES):
                    count = min(LANES, size - i)
                    scale, zeros = load_first(n[field.scale], i, count), load_bytes(n[field.zero], i, count)
                    convert(x, out, row * size + i, count, scale, zeros)

        return kernel

    return build


quantize, dequantize = _by_rows(_quantizer), _by_rows(_dequantizer)
quantize_columns, dequantize_columns = _by_columns(_quantizer), _by_columns(_dequantizer)


def extent() -> Any:
    """A vector of the smallest elements of each chunk, and a vector of the largest."""
    field = EXTENT.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, pairs, elements, chunk = n[field.x], n[field.pairs], n[field.elements], n[field.chunk]
        none = splat(float32(0))
        for item in range(begin, end):
            stop = min(elements, (item + 1) * chunk)
            low, high, more_low, more_high = none, none, none, none
            i = item * chunk
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
    """The scale that spreads the range of all chunks over 8 bits, and its zero point.

    If all elements are zero, the scale is 1/255, as in ONNX's evaluator; the standard's own function gives 0.
    """
    field = OWN_RANGE.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        pairs, scale, zero = floats(n[field.pairs]), floats(n[field.scale]), bools(n[field.zero])
        low, high = float32(0), float32(0)
        for i in range(n[field.chunks] * 2 * LANES):
            low, high = min(low, pairs[i]), max(high, pairs[i])
        width = high - low
        scale[0] = (float32(1) if width == 0 else width) / float32(255)
        zero[0] = round(min(max(-(low / scale[0]), float32(0)), float32(255)))

    return kernel
