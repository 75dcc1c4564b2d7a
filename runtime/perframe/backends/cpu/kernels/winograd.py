"""Winograd's convolution by 3 x 3 kernels, which backends/winograd.py describes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import float32

from perframe.backends.cpu.kernels.atomics import exchange, store_release
from perframe.backends.cpu.kernels.fields import WINOGRAD
from perframe.backends.cpu.kernels.finish import finish_rows
from perframe.backends.cpu.kernels.inlining import inline, spliced
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES, PANEL, ROWS, WORD_STEP
from perframe.backends.cpu.kernels.tile import RightPanel, Sums, TileResult, multiply_tile, one_run
from perframe.backends.cpu.kernels.vector import (
    add,
    at_least,
    at_most,
    begin_of_vector,
    load,
    load_first,
    multiply,
    multiply_add,
    splat,
    stack_block,
    stack_numbers,
    stack_square,
    store,
    store_first,
    subtract,
)
from perframe.backends.winograd import FAR, NEAR, POINTS

field = WINOGRAD.at
NEAR_2, FAR_2, NEAR_3, FAR_3 = NEAR**2, FAR**2, NEAR**3, FAR**3


@inline
def _into(a, b, c, d, e, f):
    """Transform the input along one dim."""
    near, far = splat(float32(-NEAR_2)), splat(float32(-FAR_2))
    both, sum_of_both = splat(float32(NEAR_2 * FAR_2)), splat(float32(-NEAR_2 - FAR_2))
    even, odd = multiply_add(far, c, e), multiply_add(far, b, d)
    even_far, odd_far = multiply_add(near, c, e), multiply_add(near, b, d)
    return (
        multiply_add(both, a, multiply_add(sum_of_both, c, e)),
        multiply_add(splat(float32(NEAR)), odd, even),
        multiply_add(splat(float32(-NEAR)), odd, even),
        multiply_add(splat(float32(FAR)), odd_far, even_far),
        multiply_add(splat(float32(-FAR)), odd_far, even_far),
        multiply_add(both, b, multiply_add(sum_of_both, d, f)),
    )


@inline
def _out_of(a, b, c, d, e, f):
    """Transform the output along one dim."""
    near, apart, far, wide = add(b, c), subtract(b, c), add(d, e), subtract(d, e)
    return (
        add(a, add(near, far)),
        multiply_add(splat(float32(FAR)), wide, multiply(splat(float32(NEAR)), apart)),
        multiply_add(splat(float32(FAR_2)), far, multiply(splat(float32(NEAR_2)), near)),
        multiply_add(splat(float32(FAR_3)), wide, multiply_add(splat(float32(NEAR_3)), apart, f)),
    )


@inline
def _store_six(a, b, c, d, e, f, target, at, step, count):
    store_first(a, target, at, count)
    store_first(b, target, at + step, count)
    store_first(c, target, at + 2 * step, count)
    store_first(d, target, at + 3 * step, count)
    store_first(e, target, at + 4 * step, count)
    store_first(f, target, at + 5 * step, count)


@inline
def _transform(x, line, pitch, inside, y0, y1, x0, x1, channels, target, step, square):
    """Transform one tile of all channels. The channels of point p go to `target + p * step`.

    Rows from y0 to y1 and columns from x0 to x1 lie inside the input; the others are zero.
    """
    count = min(LANES, channels)
    zero = splat(float32(0))
    for block in range(0, channels, LANES):
        c = begin_of_vector(block, channels)
        for i in range(6):
            at = i * line + c
            if inside:
                a, b, c_, d, e, f = (
                    load_first(x, at, count),
                    load_first(x, at + pitch, count),
                    load_first(x, at + 2 * pitch, count),
                    load_first(x, at + 3 * pitch, count),
                    load_first(x, at + 4 * pitch, count),
                    load_first(x, at + 5 * pitch, count),
                )
            else:
                here = y0 <= i and i < y1
                a = load_first(x, at, count) if here and x0 <= 0 and x1 > 0 else zero
                b = load_first(x, at + pitch, count) if here and x0 <= 1 and x1 > 1 else zero
                c_ = load_first(x, at + 2 * pitch, count) if here and x0 <= 2 and x1 > 2 else zero
                d = load_first(x, at + 3 * pitch, count) if here and x0 <= 3 and x1 > 3 else zero
                e = load_first(x, at + 4 * pitch, count) if here and x0 <= 4 and x1 > 4 else zero
                f = load_first(x, at + 5 * pitch, count) if here and x0 <= 5 and x1 > 5 else zero
            a, b, c_, d, e, f = _into(a, b, c_, d, e, f)
            _store_six(a, b, c_, d, e, f, square, i * 6 * LANES, LANES, LANES)
        for j in range(6):
            at = j * LANES
            a, b, c_, d, e, f = _into(
                load(square, at),
                load(square, at + 6 * LANES),
                load(square, at + 12 * LANES),
                load(square, at + 18 * LANES),
                load(square, at + 24 * LANES),
                load(square, at + 30 * LANES),
            )
            _store_six(a, b, c_, d, e, f, target, j * step + c, 6 * step, count)


class WinogradItem(NamedTuple):
    """The share of an item: some tiles, and the columns c0 to c1 of the result."""

    first: int  # tile, counted through all images
    tiles: int
    c0: int
    c1: int
    base: int  # address of the transformed tiles, (point, tile, channel)


@spliced
def _item_of(n, index, room):
    """The share of an item, by its number, for a thread that has taken this room."""
    tile_block = n[field.tile_block]
    c0, rest = (index % n[field.column_items]) * n[field.column_block], index // n[field.column_items]
    first = rest * tile_block
    base = n[field.transformed] + room * POINTS * tile_block * n[field.channels] * 4
    tiles, c1 = min(tile_block, n[field.tiles] - first), min(n[field.columns], c0 + n[field.column_block])
    return WinogradItem(first, tiles, c0, c1, base)


@inline
def _take_room(words, count):
    """Take a room for transformed tiles that no other thread uses, and return its number. There is one for each thread,
    so that the tiles stay in the caches.
    """
    room = 0
    while exchange(words + room * WORD_STEP, 1) != 0:
        room = (room + 1) % count
    return room


@spliced
def _transform_tiles(n, item, square):
    """Transform the input of an item's tiles."""
    height, width, across = n[field.height], n[field.width], n[field.tiles_across]
    channels, x_pitch = n[field.channels], n[field.x_pitch]
    for t in range(item.tiles):
        image, tile = divmod(item.first + t, n[field.image_tiles])
        top, left = tile // across * 4 - n[field.pad_y], tile % across * 4 - n[field.pad_x]
        y0, y1, x0, x1 = max(0, -top), min(6, height - top), max(0, -left), min(6, width - left)
        inside = y0 == 0 and x0 == 0 and y1 == 6 and x1 == 6
        at = n[field.x] + ((image * height + top) * width + left) * x_pitch * 4
        to, step = item.base + t * channels * 4, n[field.tile_block] * channels
        _transform(at, width * x_pitch, x_pitch, inside, y0, y1, x0, x1, channels, to, step, square)


@spliced
def _multiply_points(n, item, j, packed, products):
    """Multiply the tiles at all points by the panel of columns from j on."""
    channels, tile_block, w_step, zeros = n[field.channels], n[field.tile_block], n[field.point_step], n[field.zeros]
    parts = (item.tiles + ROWS - 1) // ROWS
    for point in range(POINTS):
        panel = n[field.weights] + (point * w_step + j * channels) * 4
        row = 0
        for part in range(parts):
            rows = (item.tiles - row + parts - 1 - part) // (parts - part)
            multiply_tile(
                rows,
                one_run(item.base + (point * tile_block + row) * channels * 4, channels, channels),
                RightPanel(panel, panel + (w_step + part % 4 * (channels * packed // 4)) * 4, 0, 0),
                Sums(zeros, 0, 0, 0),
                TileResult(products + (point * tile_block + row) * PANEL * 4, PANEL, packed),
                (float32(-math.inf), float32(math.inf)),
            )
            row += rows


@inline
def _sum_points(products, hop, square):
    """The four outputs down of each of a tile's six columns of points, which lie `hop` apart."""
    for i in range(6):
        at = i * 6 * hop
        a, b, c, d = _out_of(
            load(products, at),
            load(products, at + hop),
            load(products, at + 2 * hop),
            load(products, at + 3 * hop),
            load(products, at + 4 * hop),
            load(products, at + 5 * hop),
        )
        store(a, square, i * 4 * LANES)
        store(b, square, (i * 4 + 1) * LANES)
        store(c, square, (i * 4 + 2) * LANES)
        store(d, square, (i * 4 + 3) * LANES)


@inline
def _sum_columns(square, at):
    """The four outputs across of a row, in place."""
    a, b, c, d = _out_of(
        load(square, at),
        load(square, at + 4 * LANES),
        load(square, at + 8 * LANES),
        load(square, at + 12 * LANES),
        load(square, at + 16 * LANES),
        load(square, at + 20 * LANES),
    )
    store(a, square, at)
    store(b, square, at + 4 * LANES)
    store(c, square, at + 8 * LANES)
    store(d, square, at + 12 * LANES)


@spliced
def _make_outputs(n, item, t, j, wide, products, square, finish_numbers):
    """Make the outputs of a tile, for the columns of a panel."""
    out_height, out_width, across = n[field.out_height], n[field.out_width], n[field.tiles_across]
    out, out_pitch, limits = n[field.out], n[field.out_pitch], floats(n[field.limits])
    low, high, hop = splat(limits[0]), splat(limits[1]), n[field.tile_block] * PANEL
    image, tile = divmod(item.first + t, n[field.image_tiles])
    oy, ox = tile // across * 4, tile % across * 4
    deep, broad = min(4, out_height - oy), min(4, out_width - ox)
    for v in range(0, wide, LANES):
        lanes = min(LANES, wide - v)
        _sum_points(products + (t * PANEL + v) * 4, hop, square)
        first = load_first(n[field.bias], j + v, lanes)
        for h in range(broad):
            _sum_columns(square, h * LANES)
            for i in range(deep):
                pixel = (image * out_height + oy + i) * out_width + ox + h
                total = add(load(square, (i * 4 + h) * LANES), first)
                if n[field.has_addend]:
                    total = add(total, load_first(n[field.addend], pixel * n[field.addend_pitch] + j + v, lanes))
                store_first(at_most(at_least(total, low), high), out, pixel * out_pitch + j + v, lanes)
    if n[field.finish]:
        for i in range(deep):
            pixel = ((image * out_height + oy + i) * out_width + ox) * out_pitch + j
            finish_rows(n[field.finish], finish_numbers, out + pixel * 4, out_pitch, wide, n[field.parameters], broad)


def build() -> Any:
    """Items are (block of tiles, block of result columns). A block may have tiles of several images.

    The weights of a point begin `point_step` elements after those of the point before.
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        products, finish_numbers, square = stack_block(), stack_numbers(), stack_square()
        room = _take_room(n[field.room_words], n[field.rooms])
        for index in range(begin, end):
            item = _item_of(n, index, room)
            _transform_tiles(n, item, square)
            for j in range(item.c0, item.c1, PANEL):
                wide = min(PANEL, n[field.columns] - j)
                _multiply_points(n, item, j, (wide + LANES - 1) // LANES * LANES, products)
                for t in range(item.tiles):
                    _make_outputs(n, item, t, j, wide, products, square, finish_numbers)
        store_release(n[field.room_words] + room * WORD_STEP, 0)

    return kernel
