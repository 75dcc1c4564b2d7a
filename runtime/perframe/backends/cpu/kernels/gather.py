"""Gathering of elements of 1, 2, 4 and 8 bytes."""

from __future__ import annotations

from typing import Any

from numba import int64

from perframe.backends.cpu.kernels.fields import GATHER, GATHER_ELEMENTS, GATHER_ERROR, GATHER_TUPLES
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.strides import offset_of
from perframe.backends.cpu.kernels.vector import copy_floats

field, wrong = GATHER.at, GATHER_ERROR.at


@inline
def read_indices(address, is_short, error):
    """(indices as int64 and as int32, whether they are int32, the error), for `find`."""
    return int64s(address), int32s(address), is_short, int64s(error)


@inline
def find(indices, at, size):
    """An index, counted from the front. For a wrong index it is -1, and the error says which index."""
    wide, narrow, is_short, error = indices
    index = narrow[at] if is_short else wide[at]
    found = index + (size if index < 0 else 0)
    if found < 0 or found >= size:
        error[wrong.size], error[wrong.index], error[wrong.is_wrong] = size, index, 1
        return -1
    return found


@inline
def _all_inside(indices, first, count, size):
    """Whether all of these indices name one of `size` elements. LLVM vectorizes this loop, unlike one with `find`."""
    wide, narrow, is_short, _ = indices
    outside = 0
    if is_short:
        for i in range(first, first + count):
            outside += 1 if (narrow[i] < -size) | (narrow[i] >= size) else 0
    else:
        for i in range(first, first + count):
            outside += 1 if (wide[i] < -size) | (wide[i] >= size) else 0
    return outside == 0


@inline
def _indices(n):
    return read_indices(n[field.indices], n[field.is_short], n[field.error])


def _gather(pointer: Any, size: int) -> Any:
    floats = size == 4

    def build() -> Any:
        """Items are (outer, index) pairs."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, indices = pointer(n[field.x]), pointer(n[field.out]), _indices(n)
            size, inner, count = n[field.size], n[field.inner], n[field.count]
            for item in range(begin, end):
                found = find(indices, item % count, size)
                if found < 0:
                    continue
                at = (item // count * size + found) * inner
                if floats and inner > 1:
                    copy_floats(n[field.out] + item * inner * 4, n[field.x] + at * 4, inner)
                else:
                    for i in range(inner):
                        out[item * inner + i] = x[at + i]

        return kernel

    return build


build, of_bytes, of_shorts, of_words = _gather(int32s, 4), _gather(bools, 1), _gather(shorts, 2), _gather(int64s, 8)


def _elements(pointer: Any) -> Any:
    field, rest = GATHER_ELEMENTS.at, GATHER_ELEMENTS.rest

    def build() -> Any:
        """Items are rows of the indices, all dims but the last."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, indices = pointer(n[field.x]), pointer(n[field.out]), _indices(n)
            size, step, rank = n[field.size], n[field.step], n[field.rank]
            count, across = n[rest + rank - 1], n[rest + 2 * rank - 1]
            for item in range(begin, end):
                base, first = offset_of(n, rest, rest + rank, rank - 1, item), item * count
                if _all_inside(indices, first, count, size):
                    short, wide, is_short = int32s(n[field.indices]), int64s(n[field.indices]), n[field.is_short]
                    for i in range(count):
                        index = int64(short[first + i]) if is_short else wide[first + i]
                        out[first + i] = x[base + i * across + (index + (size if index < 0 else 0)) * step]
                else:
                    for i in range(count):
                        find(indices, first + i, size)

        return kernel

    return build


def _tuples(pointer: Any) -> Any:
    field, rest = GATHER_TUPLES.at, GATHER_TUPLES.rest

    def build() -> Any:
        """Items are (batch, tuple of indices); a batch has `rows` rows."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, indices = pointer(n[field.x]), pointer(n[field.out]), _indices(n)
            count, inner, rows, rank = n[field.count], n[field.inner], n[field.rows], n[field.rank]
            for item in range(begin, end):
                row, inside = item // count * rows, True
                for axis in range(rank):
                    found = find(indices, item * rank + axis, n[rest + axis])
                    inside = inside and found >= 0
                    row += found * n[rest + rank + axis]
                if inside:
                    for i in range(inner):
                        out[item * inner + i] = x[row * inner + i]

        return kernel

    return build


elements, elements_of_bytes, elements_of_shorts, elements_of_words = map(_elements, (int32s, bools, shorts, int64s))
tuples, tuples_of_bytes, tuples_of_shorts, tuples_of_words = map(_tuples, (int32s, bools, shorts, int64s))
