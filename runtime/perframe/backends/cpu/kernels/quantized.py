"""Products of bytes as convolutions and matrix products, and what becomes of their sums: int32, float32 or bytes."""

from __future__ import annotations

from typing import Any

from numba import int32

from perframe.backends.cpu.kernels.byte_tile import READ_ROWS, TILE_ROWS, tile_of
from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.memory import bools, call_kernel, floats, int32s, int64s
from perframe.backends.cpu.kernels.sizes import BLOCK, LANES, PANEL
from perframe.backends.cpu.kernels.vector import (
    at_least,
    at_most,
    load,
    multiply_add,
    splat,
    stack_block,
    stack_numbers,
    store_first,
)
from perframe.backends.cpu.kernels.whole_vector import (
    add_whole,
    between,
    copy_bytes,
    fill_bytes,
    load_whole,
    multiply,
    multiply_whole,
    nearest,
    real,
    splat_whole,
    store_bytes,
    store_whole,
    subtract_whole,
)

WINDOW = 30  # where the window's numbers begin
BATCH = 45  # where the batch's numbers begin
SUMS = BLOCK - 32 * PANEL  # where on the stack a tile's sums lie, and before them those of rows
ROW_SUMS = SUMS - 1024


@inline
def _gather(n, x, block, pitch, first, last, flip, zero):
    """The pixels' windows as rows of bytes, `pitch` apart: taps one after the other, the zero point outside."""
    height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px, channels = (
        n[WINDOW], n[WINDOW + 1], n[WINDOW + 2], n[WINDOW + 3], n[WINDOW + 4], n[WINDOW + 5], n[WINDOW + 6],
        n[WINDOW + 7], n[WINDOW + 8], n[WINDOW + 9], n[WINDOW + 10], n[WINDOW + 11], n[WINDOW + 12],
    )  # fmt: skip
    x_pitch = n[14]
    line = kx * channels
    ox, rest = first % out_width, first // out_width
    oy, image = rest % out_height, rest // out_height
    runs = dx == 1 and channels == x_pitch  # neighbouring taps follow each other
    for pixel in range(first, last):
        to, left = block + (pixel - first) * pitch, ox * sx - px
        for i in range(ky):
            y = oy * sy - py + i * dy
            if y < 0 or y >= height:
                fill_bytes(to, zero, line)
            elif runs and left >= 0 and left + kx <= width:
                copy_bytes(to, x + ((image * height + y) * width + left) * channels, line, flip)
            elif runs:
                j0 = min(kx, max(0, -left))
                j1 = max(j0, min(kx, width - left))
                fill_bytes(to, zero, j0 * channels)
                source = x + ((image * height + y) * width + left + j0) * channels
                copy_bytes(to + j0 * channels, source, (j1 - j0) * channels, flip)
                fill_bytes(to + j1 * channels, zero, (kx - j1) * channels)
            else:
                for j in range(kx):
                    at = left + j * dx
                    if at < 0 or at >= width:
                        fill_bytes(to + j * channels, zero, channels)
                    else:
                        source = x + ((image * height + y) * width + at) * x_pitch
                        copy_bytes(to + j * channels, source, channels, flip)
            to += line
        ox += 1
        if ox == out_width:
            ox, oy = 0, oy + 1
            if oy == out_height:
                oy, image = 0, image + 1


@inline
def _sum_rows(a, pitch, rows, depth, sums):
    """What each row of bytes adds up to."""
    totals = int32s(sums)
    for r in range(rows):
        row, total = bools(a + r * pitch), int32(0)
        for k in range(depth):
            total += int32(row[k])
        totals[r] = total


def build(tile: str, result: str) -> Any:
    """Items are (batch, block of pixels, block of columns).

    [x, packed w, its columns' sums, zero points of w, bias, factors, offsets, zero point of x, scale of x, zero point
    of y, out, limits, finish, its parameters, pitch of x, of out, pixels, depth, columns, pixels of a block, columns of
    a block, items of pixels, of columns, steps, groups of a step, pitch of a copy, in place, flip, sums rows, bytes of
    x, height, width, out height, width, kernel y, x, stride y, x, dilation y, x, pad y, x, channels, offset in x, in
    out, rank, batch..., steps of x..., w..., columns..., out...]
    """
    begin_tiles, multiply_tile, end_tiles = tile_of(tile)
    tile_rows, read_rows = TILE_ROWS[tile], READ_ROWS[tile]
    element = 1 if result == "bytes" else 4

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, limits, flip = n[0], n[10], floats(n[11]), n[27]
        x_pitch, out_pitch, pixels, depth, columns = n[14], n[15], n[16], n[17], n[18]
        pixel_block, column_block, pixel_items, column_items = n[19], n[20], n[21], n[22]
        steps, groups, sums_rows = n[23], n[24], n[28]
        width, rank = steps * groups * 4, n[BATCH]
        zero = int(bools(n[7])[0]) ^ flip
        scale = splat(floats(n[8])[0])
        y_zero = int(bools(n[9])[0])
        zeros, y_zeros, depths = splat_whole(zero), splat_whole(y_zero), splat_whole(depth)
        low, high = splat(limits[0]), splat(limits[1])
        memory, tail_numbers = stack_block(), stack_numbers()
        sums, row_sums, tail = memory + SUMS * 4, memory + ROW_SUMS * 4, int64s(tail_numbers)
        begin_tiles(memory, groups)
        for item in range(begin, end):
            c0, rest = (item % column_items) * column_block, item // column_items
            m0, rest = (rest % pixel_items) * pixel_block, rest // pixel_items
            x_at, w_at, column_at, out_at = n[BATCH - 2], 0, 0, n[BATCH - 1]
            for axis in range(rank - 1, -1, -1):
                dim = BATCH + 1 + axis
                c = rest % n[dim]
                rest //= n[dim]
                x_at += c * n[dim + rank]
                w_at += c * n[dim + rank * 2]
                column_at += c * n[dim + rank * 3]
                out_at += c * n[dim + rank * 4]
            m1, c1 = min(pixels, m0 + pixel_block), min(columns, c0 + column_block)
            # tiles read whole registers: where that is beyond the input, the last rows are copied too
            reach = x_at + (m0 + (m1 - m0 + read_rows - 1) // read_rows * read_rows - 1) * x_pitch + width
            if n[26] and reach <= n[29]:
                a, pitch = x + x_at + m0 * x_pitch, x_pitch
            else:
                a, pitch = memory, n[25]
                _gather(n, x + x_at, memory, pitch, m0, m1, flip, zero)
            if sums_rows:
                _sum_rows(a, pitch, m1 - m0, depth, row_sums)
            for j in range(c0, c1, PANEL):
                count = min(PANEL, columns - j)
                panel = n[1] + w_at + j * width
                for m in range(m0, m1, tile_rows):
                    rows = min(tile_rows, m1 - m)
                    multiply_tile(rows, count, a + (m - m0) * pitch, pitch, panel, sums, steps, groups)
                    to = out + (out_at + m * out_pitch + j) * element
                    for v in range(0, count, LANES):
                        at, few = column_at + j + v, min(LANES, count - v)
                        w_zero = load_whole(n[3], at)
                        weights = subtract_whole(load_whole(n[2], at), multiply_whole(depths, w_zero))
                        base = subtract_whole(load_whole(n[4], at), multiply_whole(zeros, weights))
                        factor, offset = multiply(scale, load(n[5], at)), load(n[6], at)
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
                    if result == "float32" and n[12]:
                        tail[0], tail[1], tail[2], tail[3] = to, out_pitch, count, n[13]
                        call_kernel(n[12], tail_numbers, 0, rows)
        end_tiles()

    return kernel
