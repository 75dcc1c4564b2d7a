"""Matrix products over packed panels, and convolutions as such products.

A kernel reads the rows of the left operand where they lie, and leaves out the taps outside the input. Tiles end where
other taps come in: where that would make them small, or if neighboring rows would fill few sets of the cache, each
item first copies its patch of the input to the stack.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from perframe.backends.cpu.kernels.fields import GEMM, PACK, SCALE
from perframe.backends.cpu.kernels.finish import finish_rows
from perframe.backends.cpu.kernels.inlining import inline, reader, spliced
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
# what all items read: addresses, sizes, and the elements between rows
_SIZES = "x weights bias addend out depth columns channels x_pitch out_pitch addend_pitch line_step"
_sizes_of = reader("GemmSizes", _SIZES, field, spliced)


class GemmItem(NamedTuple):
    """The share of an item: columns c0 to c1 of the pixels ox0 to ox1 of some lines, which are `line_step` apart."""

    c0: int
    c1: int
    ox0: int
    ox1: int
    oy0: int
    lines: int
    rise: int  # lines of the input's copy from one line to the next
    image: int
    oz: int
    batch: int


class GemmSource(NamedTuple):
    """Where the rows of the left operand lie, for the channels of one pass over them."""

    address: int  # of the first tap of the item's first pixel
    pitch: int  # elements between pixels
    down: int  # between the lines of taps
    up: int  # between the lines of the result
    runs: int  # of a line's taps: neighboring taps of whole pixels are one run
    run: int  # elements of a run
    across: int  # between runs
    leaves_lines: bool  # whether taps lie beside the input's lines


class DepthBlock(NamedTuple):
    """A block of the sums' depth: one plane of taps and some channels. Each is a pass over the result."""

    z: int
    has_taps: bool  # whether the plane lies in the input
    k0: int
    deep: int  # channels
    is_first: bool
    is_last: bool


class GemmPanel(NamedTuple):
    """A panel of the right operand, and what the sums of its columns begin with."""

    j: int  # its first column
    columns: int
    packed: int  # the columns in whole vectors
    address: int
    start: int  # of the bias
    adds: bool


@spliced
def _item_of(n, sizes, window, out_z, index):
    """The share of an item, by its number."""
    line_step, line_block = sizes.line_step, n[field.line_block]
    c0, rest = (index % n[field.column_items]) * n[field.column_block], index // n[field.column_items]
    ox0, rest = (rest % n[field.pixel_items]) * n[field.pixel_block], rest // n[field.pixel_items]
    oy0, rest = (rest % n[field.line_items]) * line_block * line_step, rest // n[field.line_items]
    oz, rise = 0, window.stride_y
    if line_step > 1:  # divisions take longer than the tiles of a small product
        oy0, rest = oy0 + rest % line_step, rest // line_step
    if out_z > 1:
        oz, rest = rest % out_z, rest // out_z
    if window.dilation_y > 1:
        rise = line_step * window.stride_y // window.dilation_y
    image, batch = rest % n[field.images], rest // n[field.images]
    lines = min(line_block, window.out_height - oy0)
    if line_step > 1:
        lines = min(line_block, (window.out_height - oy0 + line_step - 1) // line_step)
    ox1, c1 = min(window.out_width, ox0 + n[field.pixel_block]), min(sizes.columns, c0 + n[field.column_block])
    return GemmItem(c0, c1, ox0, ox1, oy0, lines, rise, image, oz, batch)


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


@spliced
def _source_of(n, sizes, window, item, x_at, plane_at, depth_block, block):
    """Where an item's rows lie: in the input, or in a copy of a patch of it, which this makes at `block`."""
    dilation, pitch = window.dilation_x, sizes.x_pitch
    top, left = item.oy0 * window.stride_y - window.pad_y, item.ox0 * window.stride_x - window.pad_x
    wide = (item.ox1 - item.ox0 - 1) * window.stride_x + (window.kernel_x - 1) * dilation + 1
    leaves_lines = not n[field.copies] and (left < 0 or left + wide > window.width)
    if n[field.copies]:
        pitch = n[field.copy_pitch]
        down = wide * pitch
        source, up = block, item.rise * down
        if depth_block.has_taps:
            at = sizes.x + (x_at + (plane_at * window.width + left) * sizes.x_pitch + depth_block.k0) * 4
            high = (item.lines - 1) * item.rise + window.kernel_y
            _copy_patch(n, at, block, pitch, top, left, high, wide, depth_block.deep)
    else:
        down = window.dilation_y * window.width * pitch
        up = sizes.line_step * window.stride_y * window.width * pitch
        source = sizes.x + (x_at + ((plane_at + top) * window.width + left) * pitch + depth_block.k0) * 4
    runs, run, across = window.kernel_x, depth_block.deep, dilation * pitch
    if dilation == 1 and pitch == sizes.channels == depth_block.deep:
        runs, run, across = 1, depth_block.deep * window.kernel_x, 0
    return GemmSource(source, pitch, down, up, runs, run, across, leaves_lines)


@inline
def _widen(addend, pitch, square, rows, columns):
    """Copy a tile of an addend that ends inside it, with zeros after that."""
    for row in range(rows):
        for j in range(0, PANEL, LANES):
            store(load_first(addend, row * pitch + j, columns - j), square, row * PANEL + j)


@spliced
def _multiply_line(n, sizes, window, item, source, depth_block, panel, line, at, following, square, finish_numbers):
    """Make a line of an item's result for a panel. `at`: addresses of result and addend. Return what to prefetch."""
    kernel_x, stride, dilation, pad = window.kernel_x, window.stride_x, window.dilation_x, window.pad_x
    limits, out_pitch, tap_step = floats(n[field.limits]), sizes.out_pitch, sizes.channels * panel.packed
    top = (item.oy0 + line * sizes.line_step) * window.stride_y - window.pad_y
    i0, i1 = reach(top, window.kernel_y, window.dilation_y, window.height)
    if not depth_block.has_taps:
        i1 = i0
    (c, added), ox = at, item.ox0
    while ox < item.ox1:
        j0, j1, same, runs, run = 0, kernel_x, item.ox1 - ox, source.runs, source.run
        if source.leaves_lines:
            j0, j1 = reach(ox * stride - pad, kernel_x, dilation, window.width)
            same = same_reach(ox * stride - pad, j0, j1, dilation, stride, window.width, same)
            if j1 - j0 < kernel_x:
                runs, run = j1 - j0, depth_block.deep
                if not source.across:
                    runs, run = 1, depth_block.deep * (j1 - j0)
        high = i1 - i0
        if i1 == i0 or j1 == j0:
            high, runs, run = 1, 1, 0
        tiles = (same + ROWS - 1) // ROWS
        rows = (same + tiles - 1) // tiles
        initial, initial_pitch, more, more_pitch = c, out_pitch, 0, sizes.addend_pitch
        if depth_block.is_first:
            initial, initial_pitch = panel.start, 0
            if panel.adds:
                more = added
                if n[field.addend_columns] - panel.j < panel.columns:
                    _widen(more, sizes.addend_pitch, square, rows, n[field.addend_columns] - panel.j)
                    more, more_pitch = square, PANEL
        from_tap = ((ox - item.ox0) * stride + j0 * dilation) * source.pitch
        first = source.address + (line * source.up + i0 * source.down + from_tap) * 4
        tap = panel.address + (i0 * kernel_x + j0) * tap_step * 4
        skips = (sizes.channels - depth_block.deep) * panel.packed, (kernel_x - (j1 - j0)) * tap_step
        multiply_tile(
            rows,
            LeftRows(first, stride * source.pitch, run, high, source.down, runs, source.across),
            RightPanel(tap, following, skips[0], skips[1]),
            Sums(initial, initial_pitch, more, more_pitch),
            TileResult(c, out_pitch, panel.columns),
            (limits[0], limits[1]) if depth_block.is_last else (limits[2], limits[3]),
        )
        following += sizes.depth * panel.packed
        if depth_block.is_last and n[field.finish]:
            count, long = rows, panel.columns
            if panel.columns == out_pitch:
                count, long = 1, rows * panel.columns
            finish_rows(n[field.finish], finish_numbers, c, out_pitch, long, n[field.parameters], count)
        ox += rows
        c += rows * out_pitch * 4
        added += rows * sizes.addend_pitch * 4
    return following


@spliced
def _multiply_panel(n, sizes, window, item, source, depth_block, j, plane, offsets, square, finish_numbers):
    """Make an item's result for the columns of the panel that begins with column j."""
    _, w_at, bias_at, out_at, addend_at = offsets
    count = min(PANEL, sizes.columns - j)
    packed = (count + LANES - 1) // LANES * LANES
    taps = depth_block.z * window.kernel_y * window.kernel_x * sizes.channels * packed
    address = sizes.weights + (w_at + j * sizes.depth + taps + depth_block.k0 * packed) * 4
    start = sizes.bias + (bias_at + (j if n[field.has_bias] else 0)) * 4
    adds = n[field.has_addend] != 0 and j < n[field.addend_columns]
    panel, following = GemmPanel(j, count, packed, address, start, adds), address + sizes.depth * PANEL * 4
    for line in range(item.lines):
        oy = item.oy0 + line * sizes.line_step
        pixel = plane * n[field.out_image] + oy * n[field.out_line] + item.ox0 * sizes.out_pitch
        c = sizes.out + (out_at + n[field.out_offset] + pixel + j) * 4
        m = (plane * window.out_height + oy) * window.out_width + item.ox0
        at = c, sizes.addend + (addend_at + m * sizes.addend_pitch + j) * 4
        following = _multiply_line(
            n, sizes, window, item, source, depth_block, panel, line, at, following, square, finish_numbers
        )


def build() -> Any:
    """out = finish(clip(bias + x w + addend)). Items are (batch, image, z, phase, lines, pixels, columns).

    A phase is all lines that are `line_step` apart: their taps lie on the same lines of the input.
    """

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        sizes, window = _sizes_of(n, 0), window_of(n, field.height)
        size_z, out_z, kz, sz, dz, pz = window_z_of(n, field.size_z)
        block, square, finish_numbers = stack_block(), stack_square(), stack_numbers()
        channels, channel_block = sizes.channels, n[field.channel_block]
        for index in range(begin, end):
            item = _item_of(n, sizes, window, out_z, index)
            if item.lines <= 0:  # a phase may have fewer lines than others
                continue
            offsets = batch_offsets(n, BATCH, n[field.rank], item.batch)
            x_at, plane = offsets[0] + n[field.x_offset], item.image * out_z + item.oz
            front = item.oz * sz - pz
            z0, z1 = reach(front, kz, dz, size_z)
            for z in range(z0, max(z1, z0 + 1)):
                plane_at = (item.image * size_z + front + z * dz) * window.height
                for k0 in range(0, channels, channel_block):
                    deep = min(channel_block, channels - k0)
                    is_first, is_last = z == z0 and k0 == 0, z + 1 >= z1 and k0 + deep == channels
                    depth_block = DepthBlock(z, z < z1, k0, deep, is_first, is_last)
                    source = _source_of(n, sizes, window, item, x_at, plane_at, depth_block, block)
                    for j in range(item.c0, item.c1, PANEL):
                        _multiply_panel(
                            n, sizes, window, item, source, depth_block, j, plane, offsets, square, finish_numbers
                        )

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
