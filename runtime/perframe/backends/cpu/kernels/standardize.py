"""Normalization by mean and variance, row by row."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import STANDARDIZE
from perframe.backends.cpu.kernels.math import sqrt
from perframe.backends.cpu.kernels.memory import add_in_any_order, floats, int64s

_BLOCK = 4096  # elements that are read twice while the first cache holds them
_RUN = 256  # elements of a partial sum; partial sums keep the totals of long rows exact


def rows() -> Any:
    """Items are rows."""
    field = STANDARDIZE.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, scale, bias = floats(n[field.x]), floats(n[field.scale]), floats(n[field.bias])
        out, epsilon = floats(n[field.out]), floats(n[field.epsilon])[0]
        size, centered, biased = n[field.size], n[field.is_centered], n[field.has_bias]
        scale_inner, scale_count, bias_inner = n[field.scale_inner], n[field.scale_count], n[field.bias_inner]
        bias_count = n[field.bias_count]
        for row in range(begin, end):
            first = row * size
            mean, square = float32(0), float32(0)
            for block in range(0, size, _BLOCK):
                end_of_block = min(block + _BLOCK, size)
                count = float32(end_of_block - block)
                middle = float32(0)
                if centered:
                    for run in range(block, end_of_block, _RUN):
                        part = float32(0)
                        for i in range(run, min(run + _RUN, end_of_block)):
                            part = add_in_any_order(part, x[first + i])
                        middle += part
                    middle /= count
                inside = float32(0)
                for run in range(block, end_of_block, _RUN):
                    part = float32(0)
                    for i in range(run, min(run + _RUN, end_of_block)):
                        distance = x[first + i] - middle
                        part = add_in_any_order(part, distance * distance)
                    inside += part
                if block == 0:
                    mean, square = middle, inside
                else:  # the blocks before have another mean
                    apart, share = middle - mean, count / float32(end_of_block)
                    mean += apart * share
                    square += inside + apart * apart * share * float32(block)
            factor = float32(1) / sqrt(square / float32(size) + epsilon)
            # walk the row in runs with one scale and one bias, or, if both change with each element, in one loop
            whole = (
                scale_inner == 1 and scale_count == size and (biased == 0 or (bias_inner == 1 and bias_count == size))
            )
            if whole and biased:
                for i in range(size):
                    out[first + i] = (x[first + i] - mean) * factor * scale[i] + bias[i]
            elif whole:
                for i in range(size):
                    out[first + i] = (x[first + i] - mean) * factor * scale[i]
            else:
                step = min(scale_inner, bias_inner) if biased else scale_inner
                for run in range(0, size, step):
                    at = first + run
                    by = factor * scale[at // scale_inner % scale_count]
                    shift = bias[at // bias_inner % bias_count] if biased else float32(0)
                    for i in range(at, min(at + step, first + size)):
                        out[i] = (x[i] - mean) * by + shift

    return kernel
