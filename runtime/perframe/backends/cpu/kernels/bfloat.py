"""Convolutions and matrix products of float32 numbers that are rounded to bfloat16. Their sums stay float32."""

from __future__ import annotations

from typing import Any

from numba import uint16, uint32

from perframe.backends.cpu.kernels.byte_tile import TILE_ROWS, tile_of
from perframe.backends.cpu.kernels.fields import BFLOAT, BFLOAT_ROWS
from perframe.backends.cpu.kernels.finish import finish_rows
from perframe.backends.cpu.kernels.gather_rows import gatherer
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import POINTERS, floats, int64s, shorts
from perframe.backends.cpu.kernels.sizes import LANES, PANEL, SUMS
from perframe.backends.cpu.kernels.strides import batch_offsets
from perframe.backends.cpu.kernels.vector import (
    add,
    at_least,
    at_most,
    load,
    load_first,
    splat,
    stack_block,
    stack_numbers,
    store_first,
)
from perframe.backends.cpu.kernels.whole_vector import fill_bytes

field, BATCH = BFLOAT.at, BFLOAT.rest
_gather = gatherer(field)
_bits = POINTERS["uint32"]


@inline
def _rounded(bits):
    """The upper half of the nearest bfloat16, halves to even. NaN stays NaN."""
    if bits & uint32(0x7FFFFFFF) > uint32(0x7F800000):
        return uint32(bits >> uint32(16)) | uint32(0x40)
    return uint32(bits + uint32(0x7FFF) + (uint32(bits >> uint32(16)) & uint32(1))) >> uint32(16)


@inline
def _round(source, target, count):
    """Round numbers from one address to another."""
    x, out = _bits(source), shorts(target)
    for k in range(count):
        out[k] = uint16(_rounded(x[k]))


def build(tile: str) -> Any:
    """out = finish(clip(bias + x w + addend)). Items are (batch, block of pixels, block of columns). x is float32 where
    rows are plain, and else bfloat16, as `rows` makes it.
    """
    begin_tiles, multiply_tile, end_tiles = tile_of(tile)
    tile_rows = TILE_ROWS[tile]

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, weights, limits = n[field.x], n[field.weights], floats(n[field.limits])
        finish, parameters = n[field.finish], n[field.parameters]
        x_pitch, out_pitch, addend_pitch = n[field.x_pitch], n[field.out_pitch], n[field.addend_pitch]
        pixels, depth, columns, pixel_block = n[field.pixels], n[field.depth], n[field.columns], n[field.pixel_block]
        column_block, pixel_items, column_items = n[field.column_block], n[field.pixel_items], n[field.column_items]
        steps, groups, rank, copy_pitch = n[field.steps], n[field.groups], n[field.rank], n[field.copy_pitch]
        added = n[field.addend_columns] if n[field.has_addend] else 0
        width = steps * groups * 4
        low, high = splat(limits[0]), splat(limits[1])
        memory, finish_numbers = stack_block(), stack_numbers()
        sums = memory + SUMS * 4
        if width > depth:  # weights of zero meet what is behind a row, which must not be NaN
            for row in range(min(pixels, pixel_block)):
                fill_bytes(memory + row * copy_pitch + depth, 0, width - depth)
        begin_tiles(sums, groups)
        for item in range(begin, end):
            c0, rest = (item % column_items) * column_block, item // column_items
            m0, rest = (rest % pixel_items) * pixel_block, rest // pixel_items
            x_at, w_at, bias_at, out_at, addend_at = batch_offsets(n, BATCH, rank, rest)
            x_at += n[field.x_offset]
            m1, c1 = min(pixels, m0 + pixel_block), min(columns, c0 + column_block)
            if n[field.is_plain]:
                for m in range(m0, m1):
                    _round(x + x_at + m * x_pitch, memory + (m - m0) * copy_pitch, depth // 2)
            else:
                _gather(n, x + x_at, memory, copy_pitch, m0, m1, 0, 0)
            for j in range(c0, c1, PANEL):
                count = min(PANEL, columns - j)
                panel = weights + w_at + j * width
                bias = n[field.bias] + (bias_at + j if n[field.has_bias] else 0) * 4
                for m in range(m0, m1, tile_rows):
                    rows = min(tile_rows, m1 - m)
                    multiply_tile(rows, count, memory + (m - m0) * copy_pitch, copy_pitch, panel, sums, steps, groups)
                    to = n[field.out] + (out_at + n[field.out_offset] + m * out_pitch + j) * 4
                    more = n[field.addend] + (addend_at + m * addend_pitch + j) * 4
                    for v in range(0, count, LANES):
                        few, rest_added = min(LANES, count - v), min(LANES, min(count, added - j) - v)
                        start = load_first(bias, v, few)
                        for r in range(rows):
                            value = add(load(sums, r * PANEL + v), start)
                            if rest_added > 0:
                                value = add(value, load_first(more, r * addend_pitch + v, rest_added))
                            store_first(at_most(at_least(value, low), high), to, r * out_pitch + v, few)
                    if finish:
                        finish_rows(finish, finish_numbers, to, out_pitch, count, parameters, rows)
        end_tiles()

    return kernel


def rows() -> Any:
    """Round rows of numbers. Items are rows."""
    field = BFLOAT_ROWS.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        size, pitch = n[field.size], n[field.pitch]
        for item in range(begin, end):
            count = min(size, n[field.elements] - item * size)
            _round(n[field.x] + item * pitch * 4, n[field.out] + item * size * 2, count)

    return kernel
