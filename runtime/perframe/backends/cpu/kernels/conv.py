"""Direct convolution, and its transpose. Output rows are their own accumulators and stay in the L1 cache."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.fields import CONV
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.linking import stages
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.window import window_of

field = CONV.at


@inline
def _operands(n):
    """The pointers to data, weights, bias, result and parameters."""
    x, w, b = floats(n[field.x]), floats(n[field.weights]), floats(n[field.bias])
    return x, w, b, floats(n[field.out]), floats(n[field.parameters])


@inline
def _first(pad, offset, stride):
    """The first output column whose input column `column * stride - pad + offset` is not before 0."""
    need = pad - offset
    return (need + stride - 1) // stride if need > 0 else 0


@inline
def _last(pad, offset, stride, size, columns):
    """One past the last output column whose input column lies inside `size`."""
    room = size - 1 + pad - offset
    end = room // stride + 1 if room >= 0 else 0
    return end if end < columns else columns


@stages("epilogue")
def build(epilogue: Any) -> Any:
    """Items are (batch, output channel, row)."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, w, b, out, p = _operands(n)
        channels, outputs, groups = n[field.channels], n[field.outputs], n[field.groups]
        height, width, rows, columns, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
        depth = channels // groups
        for item in range(begin, end):
            row, rest = item % rows, item // rows
            batch, output = rest // outputs, rest % outputs
            group = output // (outputs // groups)
            plane = (batch * channels + group * depth) * height * width
            o = item * columns
            for i in range(columns):
                out[o + i] = b[output]
            for c in range(depth):
                for i in range(ky):
                    y = row * sy - py + i * dy
                    if y < 0 or y >= height:
                        continue
                    line = plane + (c * height + y) * width
                    for j in range(kx):
                        weight = w[((output * depth + c) * ky + i) * kx + j]
                        first, last = _first(px, j * dx, sx), _last(px, j * dx, sx, width, columns)
                        at = line - px + j * dx
                        if sx == 1:
                            for q in range(first, last):
                                out[o + q] += weight * x[at + q]
                        else:
                            for q in range(first, last):
                                out[o + q] += weight * x[at + q * sx]
            for i in range(columns):
                out[o + i] = epilogue(out[o + i], p)

    return kernel


@stages("epilogue")
def transpose(epilogue: Any) -> Any:
    """The transpose: each output row gathers the input rows that reach it. Items are (batch, output channel) planes."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, w, b, out, p = _operands(n)
        channels, outputs, groups = n[field.channels], n[field.outputs], n[field.groups]
        height, width, rows, columns, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
        depth, per_group = channels // groups, outputs // groups
        for item in range(begin, end):
            batch, output = item // outputs, item % outputs
            group = output // per_group
            plane = (batch * channels + group * depth) * height * width
            for row in range(rows):
                o = (item * rows + row) * columns
                for i in range(columns):
                    out[o + i] = b[output]
                for i in range(ky):
                    y = row + py - i * dy
                    if y < 0 or y % sy or y // sy >= height:
                        continue
                    for c in range(depth):
                        line = plane + (c * height + y // sy) * width
                        for j in range(kx):
                            weight = w[(((group * depth + c) * per_group + output % per_group) * ky + i) * kx + j]
                            # column = q * sx - px + j * dx
                            shift = j * dx - px
                            first = (-shift + sx - 1) // sx if shift < 0 else 0
                            room = columns - 1 - shift
                            last = room // sx + 1 if room >= 0 else 0
                            last = last if last < width else width
                            for q in range(first, last):
                                out[o + q * sx + shift] += weight * x[line + q]
                for i in range(columns):
                    out[o + i] = epilogue(out[o + i], p)

    return kernel
