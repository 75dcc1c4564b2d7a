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


@inline
def _store(n, sums, first, rows, count, j, bias, more, to, finish_numbers):
    """Make some rows of the result for the columns from j on. The sums begin with row `first`; `more` and `to` are
    addresses in addend and out.
    """
    limits, out_pitch, addend_pitch = floats(n[field.limits]), n[field.out_pitch], n[field.addend_pitch]
    low, high = splat(limits[0]), splat(limits[1])
    for v in range(0, count, LANES):
        few, added = min(LANES, count - v), min(LANES, n[field.addend_columns] - j - v)
        start = load_first(bias, v, few)
        for r in range(rows):
            value = add(load(sums, (first + r) * PANEL + v), start)
            if added > 0:
                value = add(value, load_first(more, r * addend_pitch + v, min(few, added)))
            store_first(at_most(at_least(value, low), high), to, r * out_pitch + v, few)
    if n[field.finish]:
        finish_rows(n[field.finish], finish_numbers, to, out_pitch, count, n[field.parameters], rows)


def build(tile: str) -> Any:
    """out = finish(clip(bias + x w + addend)). Items are (batch, block of pixels, block of columns). x is float32 where
    rows are plain, and else bfloat16, as `rows` makes it.
    """
    begin_tiles, multiply_tile, end_tiles = tile_of(tile)
    tile_rows = TILE_ROWS[tile]

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, x_pitch, depth, columns = n[field.x], n[field.x_pitch], n[field.depth], n[field.columns]
        pixels, pixel_block, pixel_items = n[field.pixels], n[field.pixel_block], n[field.pixel_items]
        column_block, column_items, pitch = n[field.column_block], n[field.column_items], n[field.copy_pitch]
        steps, groups, width = n[field.steps], n[field.groups], n[field.panel_depth]
        memory, finish_numbers = stack_block(), stack_numbers()
        sums = memory + SUMS * 4
        if width > depth:  # weights of zero meet what is behind a row, which must not be NaN
            for row in range(min(pixels, pixel_block)):
                fill_bytes(memory + row * pitch + depth, 0, width - depth)
        begin_tiles(sums, groups)
        for item in range(begin, end):
            c0, rest = (item % column_items) * column_block, item // column_items
            m0, rest = (rest % pixel_items) * pixel_block, rest // pixel_items
            x_at, w_at, bias_at, out_at, addend_at = batch_offsets(n, BATCH, n[field.rank], rest)
            x_at += n[field.x_offset]
            m1, c1 = min(pixels, m0 + pixel_block), min(columns, c0 + column_block)
            if n[field.is_plain]:
                for m in range(m0, m1):
                    _round(x + x_at + m * x_pitch, memory + (m - m0) * pitch, depth // 2)
            else:
                _gather(n, x + x_at, memory, pitch, m0, m1, 0, 0)
            for j in range(c0, c1, PANEL):
                count, panel = min(PANEL, columns - j), n[field.weights] + w_at + j * width
                bias = n[field.bias] + (bias_at + j if n[field.has_bias] else 0) * 4
                for m in range(m0, m1, tile_rows):
                    rows = min(tile_rows, m1 - m)
                    a = memory + (m - m0) * pitch
                    multiply_tile(rows, count, a, pitch, panel, sums, steps, groups, 1, 0)
                    to = n[field.out] + (out_at + n[field.out_offset] + m * n[field.out_pitch] + j) * 4
                    more = n[field.addend] + (addend_at + m * n[field.addend_pitch] + j) * 4
                    _store(n, sums, 0, rows, count, j, bias, more, to, finish_numbers)
        end_tiles()

    return kernel


@inline
def _copy_lines(n, x, memory, first, high, wide):
    """Round lines of a picture from line `first` on, each as `wide` pixels with zeros beside the picture."""
    height, width, pad = n[field.height], n[field.width], n[field.pad_x]
    channels, x_pitch = n[field.channels], n[field.x_pitch]
    before, skipped = max(0, pad), max(0, -pad)
    count = max(0, min(width - skipped, wide - before))
    for i in range(high):
        y, to = first + i, memory + i * wide * channels
        if y < 0 or y >= height:
            fill_bytes(to, 0, wide * channels)
            continue
        source = x + (y * width + skipped) * x_pitch
        fill_bytes(to, 0, before * channels)
        to += before * channels
        if channels * 2 == x_pitch:
            _round(source, to, count * (channels // 2))
        else:
            for pixel in range(count):
                _round(source + pixel * x_pitch, to + pixel * channels, channels // 2)
        fill_bytes(to + count * channels, 0, (wide - before - count) * channels)


def lines(tile: str) -> Any:
    """A convolution of stride 1. The rows of its windows are parts of a copy of the picture's lines, which serves all
    taps. Items are (batch, picture, block of lines, block of columns).
    """
    begin_tiles, multiply_tile, end_tiles = tile_of(tile)
    tile_rows = TILE_ROWS[tile]

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        columns, channels, x_pitch = n[field.columns], n[field.channels], n[field.x_pitch]
        line_block, line_items, images = n[field.pixel_block], n[field.pixel_items], n[field.images]
        column_block, column_items = n[field.column_block], n[field.column_items]
        steps, groups, width = n[field.steps], n[field.groups], n[field.panel_depth]
        out_height, out_width = n[field.out_height], n[field.out_width]
        runs, spread = n[field.kernel_y], n[field.dilation_y]
        memory, finish_numbers = stack_block(), stack_numbers()
        sums = memory + SUMS * 4
        wide = out_width + n[field.kernel_x] - 1  # pixels of a copied line
        skip = (spread * wide - n[field.kernel_x]) * channels
        begin_tiles(sums, groups)
        for item in range(begin, end):
            c0, rest = (item % column_items) * column_block, item // column_items
            l0, rest = (rest % line_items) * line_block, rest // line_items
            image, rest = rest % images, rest // images
            x_at, w_at, bias_at, out_at, addend_at = batch_offsets(n, BATCH, n[field.rank], rest)
            x_at += n[field.x_offset] + image * n[field.height] * n[field.width] * x_pitch
            l1, c1 = min(out_height, l0 + line_block), min(columns, c0 + column_block)
            high = l1 - l0 + (runs - 1) * spread
            _copy_lines(n, n[field.x] + x_at, memory, l0 - n[field.pad_y], high, wide)
            first = (image * out_height + l0) * out_width  # the first pixel of the result
            total = (l1 - l0 - 1) * wide + out_width  # rows: those between two lines have no pixel
            for j in range(c0, c1, PANEL):
                count, panel = min(PANEL, columns - j), n[field.weights] + w_at + j * width
                bias = n[field.bias] + (bias_at + j if n[field.has_bias] else 0) * 4
                for m in range(0, total, tile_rows):
                    rows = min(tile_rows, total - m)
                    a = memory + m * channels
                    multiply_tile(rows, count, a, channels, panel, sums, steps, groups, runs, skip)
                    r = 0
                    while r < rows:
                        line, ox = (m + r) // wide, (m + r) % wide
                        some = min(rows - r, out_width - ox)
                        if some > 0:
                            pixel = first + line * out_width + ox
                            to = n[field.out] + (out_at + n[field.out_offset] + pixel * n[field.out_pitch] + j) * 4
                            more = n[field.addend] + (addend_at + pixel * n[field.addend_pitch] + j) * 4
                            _store(n, sums, r, some, count, j, bias, more, to, finish_numbers)
                        r += wide - ox
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
