"""Matrix products over packed panels, and convolutions as such products.

A kernel reads the rows of the left operand where they lie, and leaves out the taps outside the input. Tiles end where
other taps come in: where that would make them small, or if neighboring rows would fill few sets of the cache, each
item first copies its patch of the input to the stack.
"""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.fields import GEMM, PACK, SCALE
from perframe.backends.cpu.kernels.finish import finish_rows
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES, PANEL, ROWS
from perframe.backends.cpu.kernels.strides import batch_offsets, offset_of
from perframe.backends.cpu.kernels.tile import LeftRows, RightPanel, Sums, TileResult, multiply_tile
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
from perframe.backends.cpu.kernels.window import reach, same_reach, window_of, window_z_of

field, BATCH = GEMM.at, GEMM.rest


@inline
def _copy_patch(n, at, block, pitch, top, left, high, wide, channels):
    """Copy a patch of the plane whose pixel (0, left) is at `at`: (high, wide, channels) with pixels `pitch` apart, and
    lines that are `dilation_y` apart in the plane. Pixels beside the plane are zero; its lines end with it.
    """
    height, width, x_pitch, step = n[field.height], n[field.width], n[field.x_pitch], n[field.dilation_y]
    first = min(wide, max(0, -left))  # a patch may lie beside the input
    last = max(first, min(wide, width - left))
    i0, i1 = reach(top, high, step, height)
    for i in range(i0, i1):
        line, source = block + i * wide * pitch * 4, at + (top + i * step) * width * x_pitch * 4
        zero_floats(line, first * pitch)
        if channels == x_pitch and pitch == channels:
            copy_floats(line + first * pitch * 4, source + first * x_pitch * 4, (last - first) * pitch)
        else:
            for column in range(first, last):
                copy_floats(line + column * pitch * 4, source + column * x_pitch * 4, channels)
        zero_floats(line + last * pitch * 4, (wide - last) * pitch)


@inline
def _widen(addend, pitch, square, rows, columns):
    """Copy a tile of an addend that ends inside it, with zeros after that."""
    for row in range(rows):
        for j in range(0, PANEL, LANES):
            store(load_first(addend, row * pitch + j, columns - j), square, row * PANEL + j)


def build() -> Any:
    """out = finish(clip(bias + x w + addend)). Items are (batch, image, z, phase, lines, pixels, columns).

    A phase is all lines that are `line_step` apart: their taps lie on the same lines of the input.
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, w, bias, addend, out = n[field.x], n[field.weights], n[field.bias], n[field.addend], n[field.out]
        limits, finish, parameters = floats(n[field.limits]), n[field.finish], n[field.parameters]
        images, depth, columns = n[field.images], n[field.depth], n[field.columns]
        x_pitch, out_pitch, addend_pitch = n[field.x_pitch], n[field.out_pitch], n[field.addend_pitch]
        line_block, pixel_block, line_step = n[field.line_block], n[field.pixel_block], n[field.line_step]
        column_block, channel_block = n[field.column_block], n[field.channel_block]
        line_items, pixel_items, column_items = n[field.line_items], n[field.pixel_items], n[field.column_items]
        height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
        size_z, out_z, kz, sz, dz, pz = window_z_of(n, field.size_z)
        copies, channels, rank = n[field.copies], n[field.channels], n[field.rank]
        block, square, finish_numbers = stack_block(), stack_square(), stack_numbers()
        for item in range(begin, end):
            c0, rest = (item % column_items) * column_block, item // column_items
            ox0, rest = (rest % pixel_items) * pixel_block, rest // pixel_items
            oy0, rest = (rest % line_items) * line_block * line_step, rest // line_items
            oz, rise = 0, sy
            if line_step > 1:  # divisions take longer than the tiles of a small product
                oy0, rest = oy0 + rest % line_step, rest // line_step
            if out_z > 1:
                oz, rest = rest % out_z, rest // out_z
            if dy > 1:
                rise = line_step * sy // dy
            image, rest = rest % images, rest // images
            x_at, w_at, bias_at, out_at, addend_at = batch_offsets(n, BATCH, rank, rest)
            x_at += n[field.x_offset]
            out_at += n[field.out_offset]
            lines = min(line_block, out_height - oy0)
            if line_step > 1:
                lines = min(line_block, (out_height - oy0 + line_step - 1) // line_step)
            if lines <= 0:  # a phase may have fewer lines than others
                continue
            ox1, c1 = min(out_width, ox0 + pixel_block), min(columns, c0 + column_block)
            top, left = oy0 * sy - py, ox0 * sx - px
            wide = (ox1 - ox0 - 1) * sx + (kx - 1) * dx + 1
            leaves_lines = not copies and (left < 0 or left + wide > width)
            plane = image * out_z + oz
            front = oz * sz - pz
            z0, z1 = reach(front, kz, dz, size_z)
            for z in range(z0, max(z1, z0 + 1)):
                plane_at = (image * size_z + front + z * dz) * height
                for k0 in range(0, channels, channel_block):
                    deep = min(channel_block, channels - k0)
                    is_first, is_last = z == z0 and k0 == 0, z + 1 >= z1 and k0 + deep == channels
                    if copies:
                        pitch, down = n[field.copy_pitch], wide * n[field.copy_pitch]
                        source, up = block, rise * down
                        if z < z1:
                            at = x + (x_at + (plane_at * width + left) * x_pitch + k0) * 4
                            _copy_patch(n, at, block, pitch, top, left, (lines - 1) * rise + ky, wide, deep)
                    else:
                        pitch, down, up = x_pitch, dy * width * x_pitch, line_step * sy * width * x_pitch
                        source = x + (x_at + ((plane_at + top) * width + left) * x_pitch + k0) * 4
                    # neighboring taps of whole pixels are one run
                    all_runs, all_run, across = kx, deep, dx * pitch
                    if dx == 1 and pitch == channels == deep:
                        all_runs, all_run, across = 1, deep * kx, 0
                    for j in range(c0, c1, PANEL):
                        count = min(PANEL, columns - j)
                        packed = (count + LANES - 1) // LANES * LANES
                        tap_step = channels * packed
                        panel = w + (w_at + j * depth + z * ky * kx * tap_step + k0 * packed) * 4
                        following = panel + depth * PANEL * 4
                        start = bias + (bias_at + (j if n[field.has_bias] else 0)) * 4
                        adds = n[field.has_addend] and j < n[field.addend_columns]
                        for line in range(lines):
                            oy, ox = oy0 + line * line_step, ox0
                            i0, i1 = reach(oy * sy - py, ky, dy, height)
                            if z >= z1:
                                i1 = i0
                            pixel = plane * n[field.out_image] + oy * n[field.out_line] + ox * out_pitch
                            c = out + (out_at + pixel + j) * 4
                            m = (plane * out_height + oy) * out_width + ox
                            added = addend + (addend_at + m * addend_pitch + j) * 4
                            while ox < ox1:
                                j0, j1, same, runs, run = 0, kx, ox1 - ox, all_runs, all_run
                                if leaves_lines:
                                    j0, j1 = reach(ox * sx - px, kx, dx, width)
                                    same = same_reach(ox * sx - px, j0, j1, dx, sx, width, same)
                                    if j1 - j0 < kx:
                                        runs, run = j1 - j0, deep
                                        if not across:
                                            runs, run = 1, deep * (j1 - j0)
                                high = i1 - i0
                                if i1 == i0 or j1 == j0:
                                    high, runs, run = 1, 1, 0
                                tiles = (same + ROWS - 1) // ROWS
                                rows = (same + tiles - 1) // tiles
                                initial, initial_pitch, more, more_pitch = c, out_pitch, 0, addend_pitch
                                if is_first:
                                    initial, initial_pitch = start, 0
                                    if adds:
                                        more = added
                                        if n[field.addend_columns] - j < count:
                                            _widen(more, addend_pitch, square, rows, n[field.addend_columns] - j)
                                            more, more_pitch = square, PANEL
                                from_tap = ((ox - ox0) * sx + j0 * dx) * pitch
                                first = source + (line * up + i0 * down + from_tap) * 4
                                tap = panel + (i0 * kx + j0) * tap_step * 4
                                multiply_tile(
                                    rows,
                                    LeftRows(first, sx * pitch, run, high, down, runs, across),
                                    RightPanel(tap, following, (channels - deep) * packed, (kx - (j1 - j0)) * tap_step),
                                    Sums(initial, initial_pitch, more, more_pitch),
                                    TileResult(c, out_pitch, count),
                                    (limits[0], limits[1]) if is_last else (limits[2], limits[3]),
                                )
                                following += depth * packed
                                if is_last and finish:
                                    pieces, long = rows, count
                                    if count == out_pitch:
                                        pieces, long = 1, rows * count
                                    finish_rows(finish, finish_numbers, c, out_pitch, long, parameters, pieces)
                                ox += rows
                                c += rows * out_pitch * 4
                                added += rows * addend_pitch * 4

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
