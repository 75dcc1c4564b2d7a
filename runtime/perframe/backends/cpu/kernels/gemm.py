"""Matrix products over packed panels, and convolutions as such products.

Where all that windows reach lies inside the input, the rows of the left operand are read where they are. Otherwise,
and where neighbouring rows would fill few sets of the cache, an item first copies what it needs to the stack.
"""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.memory import call_kernel, floats, int64s
from perframe.backends.cpu.kernels.sizes import HAS_ADDEND, LANES, PANEL, ROWS, ZERO_BIAS
from perframe.backends.cpu.kernels.tile import multiply_tile
from perframe.backends.cpu.kernels.transpose import transpose
from perframe.backends.cpu.kernels.vector import (
    copy_floats,
    load,
    load_first,
    stack_block,
    stack_numbers,
    stack_square,
    store,
    zero_floats,
)

WINDOW = 27  # where the window's numbers begin
BATCH = 42  # where the batch's numbers begin


@inline
def _copy_patch(n, x, block, pitch, top, left, high, wide, channels, image):
    """A patch of the input, (high, wide, channels) with pixels `pitch` apart; zeros where it leaves the input."""
    height, width, x_pitch = n[WINDOW], n[WINDOW + 1], n[11]
    first = min(wide, max(0, -left))  # a patch may lie beside the input
    last = max(first, min(wide, width - left))
    for r in range(high):
        y = top + r
        line = block + r * wide * pitch * 4
        if y < 0 or y >= height:
            zero_floats(line, wide * pitch)
            continue
        zero_floats(line, first * pitch)
        at = x + ((image * height + y) * width + left) * x_pitch * 4
        if channels == x_pitch and pitch == channels:
            copy_floats(line + first * pitch * 4, at + first * x_pitch * 4, (last - first) * pitch)
        else:
            for column in range(first, last):
                copy_floats(line + column * pitch * 4, at + column * x_pitch * 4, channels)
        zero_floats(line + last * pitch * 4, (wide - last) * pitch)


@inline
def _widen(addend, pitch, square, rows, columns):
    """Copy a tile of an addend that ends inside it, with zeros after that."""
    for row in range(rows):
        for j in range(0, PANEL, LANES):
            store(load_first(addend, row * pitch + j, columns - j), square, row * PANEL + j)


def build() -> Any:
    """Items are (batch, image, band of output rows, of output columns, block of result columns):
    out = finish(clip(bias + addend + x w)).

    [x, w, bias, addend, out, limits, finish, its parameters, images, depth, columns, pitch of x, out, addend,
    flags, band rows, band columns, column block, channel block, items of band rows, of band columns, of columns,
    copies, pitch of a copy, of output lines, of output images, columns of addend, height, width, out height, width,
    kernel y, x, stride y, x, dilation y, x, pad y, x, channels, offset in x, in out, rank, batch..., steps of x...,
    w..., bias..., out..., addend...]
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, w, bias, addend, out = n[0], n[1], n[2], n[3], n[4]
        limits, finish = floats(n[5]), n[6]
        images, depth, columns, x_pitch, out_pitch, addend_pitch = n[8], n[9], n[10], n[11], n[12], n[13]
        band_rows, band_columns, column_block, channel_block = n[15], n[16], n[17], n[18]
        row_items, band_items, column_items, copies = n[19], n[20], n[21], n[22]
        width, out_height, out_width = n[WINDOW + 1], n[WINDOW + 2], n[WINDOW + 3]
        ky, kx, sy, sx, dy, dx, py, px = (
            n[WINDOW + 4], n[WINDOW + 5], n[WINDOW + 6], n[WINDOW + 7],
            n[WINDOW + 8], n[WINDOW + 9], n[WINDOW + 10], n[WINDOW + 11],
        )  # fmt: skip
        channels, rank = n[WINDOW + 12], n[BATCH]
        block, square, finish_numbers = stack_block(), stack_square(), stack_numbers()
        tail = int64s(finish_numbers)
        for item in range(begin, end):
            c0, rest = (item % column_items) * column_block, item // column_items
            ox0, rest = (rest % band_items) * band_columns, rest // band_items
            oy0, rest = (rest % row_items) * band_rows, rest // row_items
            image, rest = rest % images, rest // images
            x_at, w_at, bias_at, out_at, addend_at = n[BATCH - 2], 0, 0, n[BATCH - 1], 0
            for axis in range(rank - 1, -1, -1):
                dim = BATCH + 1 + axis
                c = rest % n[dim]
                rest //= n[dim]
                x_at += c * n[dim + rank]
                w_at += c * n[dim + rank * 2]
                bias_at += c * n[dim + rank * 3]
                out_at += c * n[dim + rank * 4]
                addend_at += c * n[dim + rank * 5]
            oy1, ox1 = min(out_height, oy0 + band_rows), min(out_width, ox0 + band_columns)
            c1 = min(columns, c0 + column_block)
            tiles = (ox1 - ox0 + ROWS - 1) // ROWS
            top, left = oy0 * sy - py, ox0 * sx - px
            high, wide = (oy1 - oy0 - 1) * sy + (ky - 1) * dy + 1, (ox1 - ox0 - 1) * sx + (kx - 1) * dx + 1
            for k0 in range(0, channels, channel_block):
                deep = min(channel_block, channels - k0)
                last = k0 + deep == channels
                if copies:
                    pitch, line = n[23], wide * n[23]
                    source = block
                    _copy_patch(n, x + (x_at + k0) * 4, block, pitch, top, left, high, wide, deep, image)
                else:
                    pitch, line = x_pitch, width * x_pitch
                    source = x + (x_at + ((image * n[WINDOW] + top) * width + left) * x_pitch + k0) * 4
                # neighbouring taps of whole pixels are one run
                runs, run, across = kx, deep, dx * pitch
                if dx == 1 and pitch == channels:
                    runs, run, across = 1, deep * kx, 0
                for j in range(c0, c1, PANEL):
                    count = min(PANEL, columns - j)
                    packed = (count + LANES - 1) // LANES * LANES
                    panel = w + (w_at + j * depth + k0 * packed) * 4
                    following = panel + depth * PANEL * 4
                    for oy in range(oy0, oy1):
                        ox = ox0
                        for i in range(tiles):
                            rows = (ox1 - ox0 + tiles - 1 - i) // tiles
                            m = (image * out_height + oy) * out_width + ox
                            c = out + (out_at + image * n[25] + oy * n[24] + ox * out_pitch + j) * 4
                            initial, initial_pitch, more, more_pitch = c, out_pitch, 0, addend_pitch
                            if k0 == 0:
                                initial, initial_pitch = bias + (bias_at + (0 if n[14] & ZERO_BIAS else j)) * 4, 0
                                if n[14] & HAS_ADDEND and j < n[26]:
                                    more = addend + (addend_at + m * addend_pitch + j) * 4
                                    if n[26] - j < count:
                                        _widen(more, addend_pitch, square, rows, n[26] - j)
                                        more, more_pitch = square, PANEL
                            multiply_tile(
                                rows,
                                source + ((oy - oy0) * sy * line + (ox - ox0) * sx * pitch) * 4,
                                sx * pitch,
                                panel,
                                c,
                                out_pitch,
                                run,
                                ky,
                                dy * line,
                                runs,
                                across,
                                (channels - deep) * packed,
                                initial,
                                initial_pitch,
                                more,
                                more_pitch,
                                limits[0] if last else limits[2],
                                limits[1] if last else limits[3],
                                following,
                                count,
                            )
                            following += depth * packed
                            if last and finish:
                                high, long = rows, count
                                if count == out_pitch:
                                    high, long = 1, rows * count
                                tail[0], tail[1], tail[2], tail[3] = c, out_pitch, long, n[7]
                                call_kernel(finish, finish_numbers, 0, high)
                            ox += rows

    return kernel


def finish(epilogue: Any) -> Any:
    """The epilogue on a few rows of a result: items are rows. [out, pitch, columns, p]"""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        out, pitch, columns, p = floats(n[0]), n[1], n[2], floats(n[3])
        for row in range(begin, end):
            for i in range(columns):
                out[row * pitch + i] = epilogue(out[row * pitch + i], p)

    return kernel


def pack() -> Any:
    """A right operand into panels, for each run: items are (batch, panel).

    [b, packed, depth, columns, step of depth, of columns, panels, offset in b, rank, batch..., steps of b...]
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        depth, columns, down, across, panels, rank = n[2], n[3], n[4], n[5], n[6], n[8]
        size = depth * ((columns + LANES - 1) // LANES * LANES)
        for item in range(begin, end):
            panel, rest = item % panels, item // panels
            target = n[1] + (rest * size + panel * PANEL * depth) * 4
            at = n[7] + panel * PANEL * across
            for axis in range(rank - 1, -1, -1):
                at += (rest % n[9 + axis]) * n[9 + rank + axis]
                rest //= n[9 + axis]
            count = min(PANEL, columns - panel * PANEL)
            width = (count + LANES - 1) // LANES * LANES
            source = n[0] + at * 4
            if across == 1 and count == width:
                for k in range(depth):
                    for c in range(0, width, LANES):
                        store(load(source, k * down + c), target, k * width + c)
            elif down == 1 and across != 1:
                transpose(source, across, target, width, count, depth)
                _zero_columns(target, depth, count, width)
            else:
                b, packed = floats(source), floats(target)
                for k in range(depth):
                    for c in range(count):
                        packed[k * width + c] = b[k * down + c * across]
                _zero_columns(target, depth, count, width)

    return kernel


@inline
def _zero_columns(panel, depth, first, width):
    """Zeros in the columns of a panel from `first` on."""
    packed = floats(panel)
    for k in range(depth):
        for c in range(first, width):
            packed[k * width + c] = 0.0


def scale() -> Any:
    """Panels with their rows multiplied: [packed, factors, out, depth, columns]; items are panels."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        packed, factors, out, depth, columns = floats(n[0]), floats(n[1]), floats(n[2]), n[3], n[4]
        for panel in range(begin, end):
            first = panel * PANEL * depth
            width = (min(PANEL, columns - panel * PANEL) + LANES - 1) // LANES * LANES
            for k in range(depth):
                factor = factors[k]
                for c in range(width):
                    out[first + k * width + c] = packed[first + k * width + c] * factor

    return kernel
