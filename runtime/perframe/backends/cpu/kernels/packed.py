"""Products with weights of 4 or 8 bits: for a few rows from registers, for more over panels that become floats. Rows of
tables of such weights.
"""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import PACKED, PACKED_TABLE
from perframe.backends.cpu.kernels.finish import finish_rows
from perframe.backends.cpu.kernels.gather import find, read_indices
from perframe.backends.cpu.kernels.inlining import inline, spliced
from perframe.backends.cpu.kernels.memory import floats, int32s, int64s
from perframe.backends.cpu.kernels.packed_tile import multiplier, unpacker
from perframe.backends.cpu.kernels.rounded_tile import rounded_multiplier
from perframe.backends.cpu.kernels.sizes import LANES, PACKED_PANEL, PACKED_ROWS, PANEL, ROWS
from perframe.backends.cpu.kernels.tile import RightPanel, Sums, TileResult, multiply_tile, one_run
from perframe.backends.cpu.kernels.vector import (
    add,
    at_least,
    at_most,
    load,
    load_first,
    splat,
    stack_block,
    stack_numbers,
    stack_square,
    store_first,
)

field = PACKED.at


@spliced
def _finish(n, numbers, out, rows, columns):
    """Apply the epilogue to a few rows, if the limits are not all of it."""
    if n[field.finish]:
        finish_rows(n[field.finish], numbers, out, n[field.columns], columns, n[field.parameters], rows)


def build(bits: int, has_zeros: bool) -> Any:
    """out = finish(clip(x w + bias)), for few rows."""
    multiply = multiplier(bits, has_zeros)

    @inline
    def product(n, row, rows, words, scales, zeros, sums):
        depth = n[field.depth]
        multiply(rows, n[field.x] + row * depth * 4, depth, depth, n[field.block], words, scales, zeros, sums)

    return _few_rows(product)


def rounded(bits: int, has_zeros: bool, kind: str) -> Any:
    """Return the same kernel for rows that rounding.py has made, few or many."""
    multiply, each = rounded_multiplier(bits, has_zeros, kind), 32 // bits

    @inline
    def product(n, row, rows, words, scales, zeros, sums):
        length, blocks = n[field.words_each] * each, n[field.blocks]
        sums_at, pitch = length + 4 * blocks, length + 8 * blocks
        x, depth, block = n[field.x] + row * pitch, n[field.depth], n[field.block]
        multiply(rows, x, pitch, length, sums_at, depth, block, words, scales, zeros, sums)

    return _few_rows(product)


def _few_rows(product: Any) -> Any:
    """Items are (rows, panels of PACKED_PANEL columns)."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rows, columns, limits = n[field.rows], n[field.columns], floats(n[field.limits])
        words, blocks, zero_words = n[field.words_each], n[field.blocks], n[field.zero_words]
        panels, row_block = n[field.panels], n[field.row_block]
        sums, finish_numbers = stack_square(), stack_numbers()
        low, high = splat(limits[0]), splat(limits[1])
        for index in range(begin, end):
            first, r0 = index % panels * PACKED_PANEL, index // panels * row_block
            count = min(PACKED_PANEL, columns - first)
            for begin_row in range(r0, min(rows, r0 + row_block), PACKED_ROWS):
                some = min(PACKED_ROWS, rows - begin_row, r0 + row_block - begin_row)
                product(
                    n,
                    begin_row,
                    some,
                    n[field.words] + first * words * 4,
                    n[field.scales] + first * blocks * 4,
                    n[field.zeros] + first * zero_words * 4,
                    sums,
                )
                out = n[field.out] + (begin_row * columns + first) * 4
                for row in range(some):
                    for c in range(0, count, LANES):
                        value = load(sums, row * PACKED_PANEL + c)
                        if n[field.has_bias]:
                            value = add(value, load_first(n[field.bias], first + c, count - c))
                        value = at_most(at_least(value, low), high)
                        store_first(value, out, row * columns + c, count - c)
                _finish(n, finish_numbers, out, some, count)

    return kernel


def tiles(bits: int, has_zeros: bool) -> Any:
    """The product for more rows. Items are (rows, panels of PANEL columns)."""
    unpack = unpacker(bits, has_zeros)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rows, columns, depth, limits = n[field.rows], n[field.columns], n[field.depth], floats(n[field.limits])
        words, blocks, zero_words = n[field.words_each], n[field.blocks], n[field.zero_words]
        panels, row_block, depth_block = n[field.panels], n[field.row_block], n[field.depth_block]
        block, finish_numbers = stack_block(), stack_numbers()
        for index in range(begin, end):
            j, r0 = index % panels * PANEL, index // panels * row_block
            r1, count = min(rows, r0 + row_block), min(PANEL, columns - j)
            width = (count + LANES - 1) // LANES * LANES
            start = n[field.bias] + (j if n[field.has_bias] else 0) * 4
            for k0 in range(0, depth, depth_block):
                deep = min(depth_block, depth - k0)
                is_last = k0 + deep == depth
                for c in range(0, width, LANES):
                    first = (j + c) // PACKED_PANEL * PACKED_PANEL
                    within = j + c - first
                    unpack(
                        n[field.words] + (first * words + within) * 4,
                        n[field.scales] + (first * blocks + within) * 4,
                        n[field.zeros] + (first * zero_words + within) * 4,
                        k0,
                        k0 + deep,
                        n[field.block],
                        block + c * 4,
                        width,
                    )
                low, high = (limits[0], limits[1]) if is_last else (limits[2], limits[3])
                row = r0
                while row < r1:
                    left = (r1 - row + ROWS - 1) // ROWS
                    some = (r1 - row + left - 1) // left
                    c = n[field.out] + (row * columns + j) * 4
                    initial, pitch = (start, 0) if k0 == 0 else (c, columns)
                    multiply_tile(
                        some,
                        one_run(n[field.x] + (row * depth + k0) * 4, depth, deep),
                        RightPanel(block, block, 0, 0),
                        Sums(initial, pitch, 0, 0),
                        TileResult(c, columns, count),
                        (low, high),
                    )
                    if is_last:
                        _finish(n, finish_numbers, c, some, count)
                    row += some

    return kernel


def table(bits: int, has_zeros: bool) -> Any:
    """The columns at some indices. Items are indices."""
    field = PACKED_TABLE.at
    each, middle = 32 // bits, 1 << bits - 1

    @inline
    def code_of(words, index):
        """The code of an index within a column of words that are PACKED_PANEL apart."""
        word = words[index // each * PACKED_PANEL] >> (index % each * bits)
        return float32(((word & 2 * middle - 1) ^ middle) - middle)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        indices = read_indices(n[field.indices], n[field.is_short], n[field.error])
        size, depth, block = n[field.size], n[field.depth], n[field.block]
        for item in range(begin, end):
            found = find(indices, item, size)
            if found < 0:
                continue
            first, out = found // PACKED_PANEL * PACKED_PANEL, floats(n[field.out] + item * depth * 4)
            within = found - first
            words = int32s(n[field.words] + (first * n[field.words_each] + within) * 4)
            scales = floats(n[field.scales] + (first * n[field.blocks] + within) * 4)
            zeros = int32s(n[field.zeros] + (first * n[field.zero_words] + within) * 4)
            for index in range(n[field.blocks]):
                scale, zero = scales[index * PACKED_PANEL], float32(0)
                if has_zeros:
                    zero = code_of(zeros, index)
                for k in range(index * block, min(depth, (index + 1) * block)):
                    out[k] = (code_of(words, k) - zero) * scale

    return kernel
