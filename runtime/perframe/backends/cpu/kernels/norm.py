"""Normalizations along an axis."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import NEIGHBOURS, SOFTMAX
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.math import exp_of_negative, log, maximum
from perframe.backends.cpu.kernels.memory import add_in_any_order, floats, int64s
from perframe.backends.cpu.kernels.powers import power
from perframe.backends.cpu.kernels.sizes import LANES, ROWS_TOGETHER, RUN, SHORT_ROW
from perframe.backends.cpu.kernels.transpose import deinterleave, interleave, transpose
from perframe.backends.cpu.kernels.vector import larger_or_nan, load, stack_block, store


def softmax() -> Any:
    """Items are rows, groups of short rows, or runs of columns."""
    field = SOFTMAX.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        size, inner, logarithm, outer = n[field.size], n[field.inner], n[field.takes_logarithm], n[field.outer]
        memory = stack_block()
        if inner > 1:
            runs = (inner + RUN - 1) // RUN
            for item in range(begin, end):
                first = item % runs * RUN
                at = (item // runs * size * inner + first) * 4
                _columns(
                    n[field.x] + at, inner, n[field.out] + at, inner, size, min(RUN, inner - first), logarithm, memory
                )
        elif size < SHORT_ROW:
            given = memory + 2 * RUN * 4
            made = given + SHORT_ROW * ROWS_TOGETHER * 4
            for item in range(begin, end):
                first = item * ROWS_TOGETHER
                rows, at = min(ROWS_TOGETHER, outer - first), first * size * 4
                if size <= 4:
                    deinterleave(n[field.x] + at, size, given, ROWS_TOGETHER, rows)
                else:
                    transpose(n[field.x] + at, size, given, ROWS_TOGETHER, rows, size)
                _columns(given, ROWS_TOGETHER, made, ROWS_TOGETHER, size, rows, logarithm, memory)
                if size <= 4:
                    interleave(made, ROWS_TOGETHER, n[field.out] + at, size, rows)
                else:
                    transpose(made, ROWS_TOGETHER, n[field.out] + at, size, size, rows)
        else:
            for item in range(begin, end):
                _row(n[field.x] + item * size * 4, n[field.out] + item * size * 4, size, logarithm)

    return kernel


@inline
def _row(source, target, size, logarithm):
    x, out = floats(source), floats(target)
    largest = _largest(source, size)
    for i in range(size):
        out[i] = exp_of_negative(x[i] - largest)
    total = float32(0)
    for i in range(size):
        total = add_in_any_order(total, out[i])
    if logarithm:
        shift = log(total)
        for i in range(size):
            out[i] = (x[i] - largest) - shift
    else:
        factor = float32(1) / total
        for i in range(size):
            out[i] *= factor


@inline
def _columns(source, x_pitch, target, out_pitch, size, wide, logarithm, memory):
    """The softmax of adjacent columns. `memory` takes 2 * RUN elements: the largest and the total of each column."""
    x, out, largest, total = floats(source), floats(target), floats(memory), floats(memory + RUN * 4)
    for i in range(wide):
        largest[i] = x[i]
    for k in range(1, size):
        for i in range(wide):
            largest[i] = maximum(largest[i], x[k * x_pitch + i])
    for i in range(wide):
        total[i] = float32(0)
    for k in range(size):
        for i in range(wide):
            value = exp_of_negative(x[k * x_pitch + i] - largest[i])
            out[k * out_pitch + i] = value
            total[i] += value
    if logarithm:
        for i in range(wide):
            total[i] = log(total[i])
        for k in range(size):
            for i in range(wide):
                out[k * out_pitch + i] = (x[k * x_pitch + i] - largest[i]) - total[i]
    else:
        for i in range(wide):
            total[i] = float32(1) / total[i]
        for k in range(size):
            for i in range(wide):
                out[k * out_pitch + i] *= total[i]


@inline
def _largest(x, size):
    """The largest element of a row of at least one vector. The last vector overlaps the one before."""
    found = load(x, 0)
    for i in range(LANES, size, LANES):
        found = larger_or_nan(found, load(x, min(i, size - LANES)))
    memory = stack_block()
    store(found, memory, 0)
    lanes = floats(memory)
    largest = lanes[0]
    for i in range(LANES):
        largest = maximum(largest, lanes[i])
    return largest


def neighbours() -> Any:
    """Items are (outer, run of neighboring columns); the parameters are alpha, beta and bias."""
    field = NEIGHBOURS.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        channels, inner, before, after = n[field.channels], n[field.inner], n[field.before], n[field.after]
        alpha, beta = floats(n[field.parameters])[0], floats(n[field.parameters])[1]
        bias = floats(n[field.parameters])[2]
        runs = (inner + RUN - 1) // RUN
        total = floats(stack_block())
        for item in range(begin, end):
            first = item % runs * RUN
            wide = min(RUN, inner - first)
            at = (item // runs * channels * inner + first) * 4
            for c in range(channels):
                for i in range(wide):
                    total[i] = float32(0)
                for k in range(max(0, c - before), min(channels, c + after + 1)):
                    x = floats(n[field.x] + at + k * inner * 4)
                    for i in range(wide):
                        total[i] += x[i] * x[i]
                x, out = floats(n[field.x] + at + c * inner * 4), floats(n[field.out] + at + c * inner * 4)
                for i in range(wide):
                    out[i] = x[i] / power(bias + alpha * total[i], beta)

    return kernel
