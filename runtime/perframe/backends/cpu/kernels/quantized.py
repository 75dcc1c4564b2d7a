"""Convolutions and matrix products of bytes. Their sums become int32, float32 or bytes."""

from __future__ import annotations

from typing import Any

from numba import int32

from perframe.backends.cpu.kernels.byte_tile import READ_ROWS, TILE_ROWS, tile_of
from perframe.backends.cpu.kernels.fields import QUANTIZED
from perframe.backends.cpu.kernels.finish import finish_rows
from perframe.backends.cpu.kernels.gather_rows import gatherer
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import bools, floats, int32s, int64s
from perframe.backends.cpu.kernels.sizes import LANES, PANEL, ROW_SUMS, SUMS
from perframe.backends.cpu.kernels.strides import batch_offsets
from perframe.backends.cpu.kernels.vector import (
    at_least,
    at_most,
    load,
    multiply,
    multiply_add,
    splat,
    stack_block,
    stack_numbers,
    store_first,
)
from perframe.backends.cpu.kernels.whole_vector import (
    add_whole,
    between,
    load_whole,
    multiply_whole,
    nearest,
    real,
    splat_whole,
    store_bytes,
    store_whole,
    subtract_whole,
)

field, BATCH = QUANTIZED.at, QUANTIZED.rest
_gather = gatherer(field)


@inline
def _sum_rows(a, pitch, rows, depth, sums):
    """Write the sum of each row of bytes."""
    totals = int32s(sums)
    for r in range(rows):
        row, total = bools(a + r * pitch), int32(0)
        for k in range(depth):
            total += int32(row[k])
        totals[r] = total


def build(tile: str, result: str) -> Any:
    """Items are (batch, block of pixels, block of columns). `result` names the dtype of the results, or "bytes"."""
    begin_tiles, multiply_tile, end_tiles = tile_of(tile)
    tile_rows, read_rows = TILE_ROWS[tile], READ_ROWS[tile]
    element = 1 if result == "bytes" else 4

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, weights, out, limits = n[field.x], n[field.weights], n[field.out], floats(n[field.limits])
        finish, parameters, flip = n[field.finish], n[field.parameters], n[field.flip]
        x_pitch, out_pitch, pixels = n[field.x_pitch], n[field.out_pitch], n[field.pixels]
        depth, columns, pixel_block = n[field.depth], n[field.columns], n[field.pixel_block]
        column_block, pixel_items, column_items = n[field.column_block], n[field.pixel_items], n[field.column_items]
        steps, groups, sums_rows, rank = n[field.steps], n[field.groups], n[field.sums_rows], n[field.rank]
        width = steps * groups * 4
        zero, y_zero = int(bools(n[field.x_zero])[0]) ^ flip, int(bools(n[field.y_zero])[0])
        scale = splat(floats(n[field.x_scale])[0])
        zeros, y_zeros, depths = splat_whole(zero), splat_whole(y_zero), splat_whole(depth)
        low, high = splat(limits[0]), splat(limits[1])
        memory, finish_numbers = stack_block(), stack_numbers()
        sums, row_sums = memory + SUMS * 4, memory + ROW_SUMS * 4
        begin_tiles(memory, groups)
        for item in range(begin, end):
            c0, rest = (item % column_items) * column_block, item // column_items
            m0, rest = (rest % pixel_items) * pixel_block, rest // pixel_items
            x_at, w_at, column_at, out_at, _ = batch_offsets(n, BATCH, rank, rest)
            x_at += n[field.x_offset]
            out_at += n[field.out_offset]
            m1, c1 = min(pixels, m0 + pixel_block), min(columns, c0 + column_block)
            # tiles read whole registers: if these end beyond the input, the rows are copied
            reach = x_at + (m0 + (m1 - m0 + read_rows - 1) // read_rows * read_rows - 1) * x_pitch + width
            if n[field.in_place] and reach <= n[field.x_bytes]:
                a, pitch = x + x_at + m0 * x_pitch, x_pitch
            else:
                a, pitch = memory, n[field.copy_pitch]
                _gather(n, x + x_at, memory, pitch, m0, m1, flip, zero)
            if sums_rows:
                _sum_rows(a, pitch, m1 - m0, depth, row_sums)
            for j in range(c0, c1, PANEL):
                count = min(PANEL, columns - j)
                panel = weights + w_at + j * width
                for m in range(m0, m1, tile_rows):
                    rows = min(tile_rows, m1 - m)
                    multiply_tile(rows, count, a + (m - m0) * pitch, pitch, panel, sums, steps, groups, 1, 0)
                    to = out + (out_at + m * out_pitch + j) * element
                    for v in range(0, count, LANES):
                        at, few = column_at + j + v, min(LANES, count - v)
                        w_zero = load_whole(n[field.w_zeros], at)
                        w_sum = subtract_whole(load_whole(n[field.sums], at), multiply_whole(depths, w_zero))
                        base = subtract_whole(load_whole(n[field.bias], at), multiply_whole(zeros, w_sum))
                        factor, offset = multiply(scale, load(n[field.factors], at)), load(n[field.offsets], at)
                        for r in range(rows):
                            total = add_whole(load_whole(sums, r * PANEL + v), base)
                            if sums_rows:
                                row = splat_whole(int(int32s(row_sums)[m - m0 + r]))
                                total = subtract_whole(total, multiply_whole(w_zero, row))
                            if result == "int32":
                                store_whole(total, to, r * out_pitch + v, few)
                            else:
                                value = multiply_add(real(total), factor, offset)
                                if result == "float32":
                                    store_first(at_most(at_least(value, low), high), to, r * out_pitch + v, few)
                                else:
                                    whole = add_whole(nearest(between(value, low, high)), y_zeros)
                                    store_bytes(whole, to, r * out_pitch + v, few)
                    if result == "float32" and finish:
                        finish_rows(finish, finish_numbers, to, out_pitch, count, parameters, rows)
        end_tiles()

    return kernel
