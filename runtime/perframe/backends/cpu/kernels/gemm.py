"""Matrix products over packed panels, and convolutions as such products.

A kernel reads the rows of the left operand where they lie, if its windows stay inside the input. Otherwise, or if
neighbouring rows would fill few sets of the cache, each item first copies its patch of the input to the stack.
"""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.fields import GEMM, PACK, SCALE
from perframe.backends.cpu.kernels.finish import finish_rows
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES, PANEL, ROWS
from perframe.backends.cpu.kernels.strides import batch_offsets, offset_of
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
from perframe.backends.cpu.kernels.window import window_of

field, BATCH = GEMM.at, GEMM.rest


@inline
def _copy_patch(n, x, block, pitch, top, left, high, wide, channels, image):
    """Copy a patch of the input, (high, wide, channels) with pixels `pitch` apart. Outside the input it is zero."""
    height, width, x_pitch = n[field.height], n[field.width], n[field.x_pitch]
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
    """out = finish(clip(bias + addend + x w)). Items are (batch, image, block of lines, of pixels, of columns)."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, w, bias, addend, out = n[field.x], n[field.weights], n[field.bias], n[field.addend], n[field.out]
        limits, finish, parameters = floats(n[field.limits]), n[field.finish], n[field.parameters]
        images, depth, columns = n[field.images], n[field.depth], n[field.columns]
        x_pitch, out_pitch, addend_pitch = n[field.x_pitch], n[field.out_pitch], n[field.addend_pitch]
        line_block, pixel_block = n[field.line_block], n[field.pixel_block]
        column_block, channel_block = n[field.column_block], n[field.channel_block]
        line_items, pixel_items, column_items = n[field.line_items], n[field.pixel_items], n[field.column_items]
        height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
        copies, channels, rank = n[field.copies], n[field.channels], n[field.rank]
        block, square, finish_numbers = stack_block(), stack_square(), stack_numbers()
        for item in range(begin, end):
            c0, rest = (item % column_items) * column_block, item // column_items
            ox0, rest = (rest % pixel_items) * pixel_block, rest // pixel_items
            oy0, rest = (rest % line_items) * line_block, rest // line_items
            image, rest = rest % images, rest // images
            x_at, w_at, bias_at, out_at, addend_at = batch_offsets(n, BATCH, rank, rest)
            x_at += n[field.x_offset]
            out_at += n[field.out_offset]
            oy1, ox1 = min(out_height, oy0 + line_block), min(out_width, ox0 + pixel_block)
            c1 = min(columns, c0 + column_block)
            tiles = (ox1 - ox0 + ROWS - 1) // ROWS
            top, left = oy0 * sy - py, ox0 * sx - px
            high, wide = (oy1 - oy0 - 1) * sy + (ky - 1) * dy + 1, (ox1 - ox0 - 1) * sx + (kx - 1) * dx + 1
            for k0 in range(0, channels, channel_block):
                deep = min(channel_block, channels - k0)
                last = k0 + deep == channels
                if copies:
                    pitch, line = n[field.copy_pitch], wide * n[field.copy_pitch]
                    source = block
                    _copy_patch(n, x + (x_at + k0) * 4, block, pitch, top, left, high, wide, deep, image)
                else:
                    pitch, line = x_pitch, width * x_pitch
                    source = x + (x_at + ((image * height + top) * width + left) * x_pitch + k0) * 4
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
                            pixel = image * n[field.out_image] + oy * n[field.out_line] + ox * out_pitch
                            c = out + (out_at + pixel + j) * 4
                            initial, initial_pitch, more, more_pitch = c, out_pitch, 0, addend_pitch
                            if k0 == 0:
                                initial, initial_pitch = bias + (bias_at + (j if n[field.has_bias] else 0)) * 4, 0
                                if n[field.has_addend] and j < n[field.addend_columns]:
                                    more = addend + (addend_at + m * addend_pitch + j) * 4
                                    if n[field.addend_columns] - j < count:
                                        _widen(more, addend_pitch, square, rows, n[field.addend_columns] - j)
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
                                lines, long = rows, count
                                if count == out_pitch:
                                    lines, long = 1, rows * count
                                finish_rows(finish, finish_numbers, c, out_pitch, long, parameters, lines)
                            ox += rows

    return kernel


def pack() -> Any:
    """Pack a right operand into panels. Items are (batch, panel)."""
    field, batch = PACK.at, PACK.rest

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        depth, columns, panels, rank = n[field.depth], n[field.columns], n[field.panels], n[field.rank]
        down, across = n[field.depth_step], n[field.column_step]
        size = depth * ((columns + LANES - 1) // LANES * LANES)
        for item in range(begin, end):
            panel, rest = item % panels, item // panels
            target = n[field.packed] + (rest * size + panel * PANEL * depth) * 4
            at = n[field.offset] + panel * PANEL * across + offset_of(n, batch, batch + rank, rank, rest)
            count = min(PANEL, columns - panel * PANEL)
            width = (count + LANES - 1) // LANES * LANES
            source = n[field.b] + at * 4
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
    """Write zeros to the columns of a panel from `first` on."""
    packed = floats(panel)
    for k in range(depth):
        for c in range(first, width):
            packed[k * width + c] = 0.0


def scale() -> Any:
    """Multiply the rows of packed panels by factors. Items are panels."""
    field = SCALE.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        packed, factors, out = floats(n[field.packed]), floats(n[field.factors]), floats(n[field.out])
        depth, columns = n[field.depth], n[field.columns]
        for panel in range(begin, end):
            first = panel * PANEL * depth
            width = (min(PANEL, columns - panel * PANEL) + LANES - 1) // LANES * LANES
            for k in range(depth):
                factor = factors[k]
                for c in range(width):
                    out[first + k * width + c] = packed[first + k * width + c] * factor

    return kernel
