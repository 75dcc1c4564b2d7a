"""Resampling."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import REPEAT, RESIZE, RESIZE_PLANES
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import bools, floats, int32s, int64s, shorts
from perframe.backends.cpu.kernels.sizes import COLUMNS, LANES, SLOTS
from perframe.backends.cpu.kernels.vector import (
    add,
    copy_floats,
    load_first,
    splat,
    stack_block,
    stack_numbers,
    store_first,
    zero_floats,
)
from perframe.backends.cpu.kernels.whole_vector import gather, load_whole_first, weighted


def build() -> Any:
    """Resample one axis by taps. Items are (outer, output) rows of `inner`."""
    field = RESIZE.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, out, indices = floats(n[field.x]), floats(n[field.out]), int64s(n[field.indices])
        weights = floats(n[field.weights])
        size, inner, outputs, taps = n[field.size], n[field.inner], n[field.outputs], n[field.taps]
        for item in range(begin, end):
            output = item % outputs
            plane = item // outputs * size
            at, o = output * taps, item * inner
            if taps == 1 and weights[at] == float32(1):
                copy_floats(n[field.out] + o * 4, n[field.x] + (plane + indices[at]) * inner * 4, inner)
            elif taps == 2 and weights[at] != float32(0) and weights[at + 1] != float32(0):
                u, v = weights[at], weights[at + 1]
                first, second = (plane + indices[at]) * inner, (plane + indices[at + 1]) * inner
                for i in range(inner):
                    out[o + i] = u * x[first + i] + v * x[second + i]
            else:
                for i in range(inner):
                    out[o + i] = float32(0)
                for k in range(taps):
                    weight, first = weights[at + k], (plane + indices[at + k]) * inner
                    if weight != float32(0):
                        for i in range(inner):
                            out[o + i] += weight * x[first + i]

    return kernel


def planes() -> Any:
    """Resample planes by taps of rows and of columns. Items are (plane, block of columns, line of the output).

    A line of the input is resampled once, on the stack, and serves all lines of the output that need it.
    """
    field = RESIZE_PLANES.at

    @inline
    def _resample(n, source, target, first, wide):
        """Resample `wide` columns of a line of the input."""
        columns, weights = n[field.columns] + first * 4, n[field.column_weights] + first * 4
        taps, pitch = n[field.column_taps], n[field.out_width]
        for i in range(0, wide, LANES):
            count = min(LANES, wide - i)
            total = splat(float32(0))
            for k in range(taps):
                given = gather(source, load_whole_first(columns, k * pitch + i, count))
                total = add(total, weighted(given, load_first(weights, k * pitch + i, count)))
            store_first(total, target, i, count)

    @inline
    def _add_line(source, weight, target, wide, is_first):
        """Add a line with a weight. The first line replaces what was in the memory."""
        x, out = floats(source), floats(target)
        if is_first:
            for i in range(wide):
                out[i] = weight * x[i]
        else:
            for i in range(wide):
                out[i] += weight * x[i]

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rows, weights = int64s(n[field.rows]), floats(n[field.row_weights])
        height, width, lines, blocks = n[field.height], n[field.width], n[field.out_height], n[field.blocks]
        taps = n[field.row_taps]
        memory, known = stack_block(), int64s(stack_numbers())
        slots = min(taps, SLOTS)
        for item in range(begin, end):
            line = item % lines
            first, plane = item // lines % blocks * COLUMNS, item // lines // blocks
            wide = min(COLUMNS, n[field.out_width] - first)
            if line == 0 or item == begin:
                for slot in range(slots):
                    known[slot] = -1
            target = n[field.out] + ((plane * lines + line) * n[field.out_width] + first) * 4
            is_empty = True
            for k in range(line * taps, line * taps + taps):
                row = rows[k]
                if weights[k] != float32(0):
                    slot = memory + row % slots * COLUMNS * 4
                    if known[row % slots] != row:
                        known[row % slots] = row
                        _resample(n, n[field.x] + (plane * height + row) * width * 4, slot, first, wide)
                    _add_line(slot, weights[k], target, wide, is_empty)
                    is_empty = False
            if is_empty:
                zero_floats(target, wide)

    return kernel


def _repeat(pointer: Any, size: int) -> Any:
    field = REPEAT.at

    @inline
    def _copy(target, source, count):
        if size >= 4:
            copy_floats(target, source, count * (size // 4))
        else:
            x, out = pointer(source), pointer(target)
            for i in range(count):
                out[i] = x[i]

    @inline
    def _fill(n, source, target):
        """Make a line of the output from a line of the input."""
        x, out, columns, times = pointer(source), pointer(target), int32s(n[field.columns]), int64s(n[field.times])[0]
        width, inner = n[field.out_width], n[field.inner]
        if times == 1:
            _copy(target, source, width * inner)
        elif inner > 1:
            for i in range(width):
                _copy(target + i * inner * size, source + columns[i] * inner * size, inner)
        elif times == 2:
            for i in range(width // 2):
                value = x[i]
                out[2 * i] = value
                out[2 * i + 1] = value
            if width % 2:
                out[width - 1] = x[width // 2]
        else:
            for i in range(width):
                out[i] = x[columns[i]]

    def build() -> Any:
        """Copy rows and columns of planes. Items are (plane, line of the output)."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            rows, height, lines = int32s(n[field.rows]), n[field.height], n[field.out_height]
            pitch = n[field.out_width] * n[field.inner] * size
            line, first = begin % lines, begin // lines * height
            for item in range(begin, end):
                target = n[field.out] + item * pitch
                if line and item > begin and rows[line] == rows[line - 1]:
                    _copy(target, target - pitch, pitch // size)
                else:
                    row = first + rows[line]
                    _fill(n, n[field.x] + row * n[field.width] * n[field.inner] * size, target)
                line += 1
                if line == lines:
                    line, first = 0, first + height

        return kernel

    return build


repeat, repeat_of_bytes, repeat_of_shorts = _repeat(int32s, 4), _repeat(bools, 1), _repeat(shorts, 2)
repeat_of_words = _repeat(int64s, 8)
