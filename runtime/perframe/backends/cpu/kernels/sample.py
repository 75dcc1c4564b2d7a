"""Pixels of a picture at the places to which a matrix brings the elements of a tensor. Places are found for a block of
columns, and then the pixels of each channel: LLVM vectorizes both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32, float64, int32

from perframe.backends.cpu.kernels.fields import SAMPLE
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.math import floor
from perframe.backends.cpu.kernels.memory import POINTERS, doubles, floats, int32s, int64s, select
from perframe.backends.cpu.kernels.sizes import POINT_BLOCK
from perframe.backends.cpu.kernels.vector import stack_block

field, CHANNELS = SAMPLE.at, SAMPLE.rest
HALF, ZERO = float64(0.5), float64(0)
ALPHA = 3


@inline
def _pixel(at, size):
    """The index of a pixel: that at the edge for a place beyond it, and the first one for NaN."""
    within = select(at > ZERO, at, ZERO)
    return int32(select(within < size - float64(1), within, size - float64(1)))


@inline
def _find(n, matrix, row, first, many, shift, offsets, parts):
    """Write where the pixels of a block of columns lie: the offsets of the four around each place, tap by tap, and the
    shares of the right ones and the lower ones.
    """
    height, width = float64(n[field.height]), float64(n[field.width])
    pitch, step, has_depth = int32(n[field.row_step]), int32(n[field.column_step]), n[field.has_depth] != 0
    y, begin = float64(row) + HALF, float64(first) + HALF
    a, b, c, d = matrix[0], matrix[1] * y + matrix[2], matrix[3], matrix[4] * y + matrix[5]
    e, f = matrix[6], matrix[7] * y + matrix[8]
    for p in range(many):
        x = begin + float64(p)
        across, down = a * x + b, c * x + d
        if has_depth:
            depth = e * x + f  # positive in a region
            across, down = across / depth, down / depth
        across, down = across - shift, down - shift
        left, upper = floor(across), floor(down)
        parts[p], parts[POINT_BLOCK + p] = float32(across - left), float32(down - upper)
        near, far = _pixel(left, width) * step, _pixel(left + float64(1), width) * step
        above, below = _pixel(upper, height) * pitch, _pixel(upper + float64(1), height) * pitch
        offsets[p], offsets[POINT_BLOCK + p] = above + near, above + far
        offsets[2 * POINT_BLOCK + p], offsets[3 * POINT_BLOCK + p] = below + near, below + far


def build(dtype: str) -> Any:
    """Items are the rows of a tensor. `colors` are the value of a pixel of 1, then the color beyond the box, the mean
    and the factor of each channel.
    """
    pointer, item = POINTERS[dtype], np.dtype(dtype).itemsize

    @inline
    def mix(x, many, offsets, parts, values):
        for p in range(many):
            part, below = parts[p], parts[POINT_BLOCK + p]
            upper = x[offsets[p]] * (float32(1) - part) + x[offsets[POINT_BLOCK + p]] * part
            lower = x[offsets[2 * POINT_BLOCK + p]] * (float32(1) - part) + x[offsets[3 * POINT_BLOCK + p]] * part
            values[p] = upper * (float32(1) - below) + lower * below

    @inline
    def take(x, many, offsets, values):
        for p in range(many):
            values[p] = float32(x[offsets[p]])

    @inline
    def put(n, out, channel, values, many, unit, mean, factor):
        step = n[field.out_column_step]
        for p in range(many):
            out[p * step] = (values[p] * unit - mean) * factor

    @inline
    def fill(n, out, colors, begin, end):
        """Give the elements of a row that lie beyond the box its color."""
        for channel in range(n[field.out_channels]):
            mean, factor = colors[5 + channel], colors[9 + channel]
            color, at = colors[1 + n[CHANNELS + channel]], channel * n[field.out_channel_step]
            for column in range(begin, end):
                out[at + column * n[field.out_column_step]] = (color - mean) * factor

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        matrix, colors = doubles(n[field.matrix]), floats(n[field.colors])
        left, top, width, right = n[field.left], n[field.top], n[field.out_width], n[field.left] + n[field.wide]
        memory = stack_block()
        offsets, parts, values = int32s(memory), floats(memory + 16 * POINT_BLOCK), floats(memory + 24 * POINT_BLOCK)
        is_linear = n[field.is_linear] != 0
        shift = HALF if is_linear else ZERO
        for row in range(begin, end):
            base = n[field.out] + 4 * row * n[field.out_row_step]
            if not top <= row < top + n[field.high]:
                fill(n, floats(base), colors, 0, width)
                continue
            fill(n, floats(base), colors, 0, left)
            fill(n, floats(base), colors, right, width)
            for first in range(left, right, POINT_BLOCK):
                many = min(POINT_BLOCK, right - first)
                _find(n, matrix, row, first, many, shift, offsets, parts)
                for channel in range(n[field.out_channels]):
                    source, unit = n[CHANNELS + channel], colors[0]
                    x = pointer(n[field.x] + source * n[field.channel_step] * item)
                    if source >= n[field.channels]:  # GL fills missing channels like this
                        unit = float32(1)
                        for p in range(many):
                            values[p] = float32(1) if source == ALPHA else float32(0)
                    elif is_linear:
                        mix(x, many, offsets, parts, values)
                    else:
                        take(x, many, offsets, values)
                    out = floats(base + 4 * (first * n[field.out_column_step] + channel * n[field.out_channel_step]))
                    put(n, out, channel, values, many, unit, colors[5 + channel], colors[9 + channel])

    return kernel
