"""Gathering of elements of 1, 2, 4 and 8 bytes."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.fields import GATHER, GATHER_ELEMENTS, GATHER_TUPLES
from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.vector import copy_floats


def _gather(pointer: Any, size: int) -> Any:
    field = GATHER.at
    floats = size == 4

    def build() -> Any:
        """Items are (outer, index) pairs; a wrong index sets `error` to (1, the index, the size)."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, wide, narrow = pointer(n[field.x]), int64s(n[field.indices]), int32s(n[field.indices])
            out, word = pointer(n[field.out]), int64s(n[field.error])
            short, size, inner, count = n[field.is_short], n[field.size], n[field.inner], n[field.count]
            for item in range(begin, end):
                place = item % count
                index = narrow[place] if short else wide[place]
                at = index + (size if index < 0 else 0)
                if at < 0 or at >= size:
                    word[2], word[1], word[0] = size, index, 1
                    continue
                at = (item // count * size + at) * inner
                if floats and inner > 1:
                    copy_floats(n[field.out] + item * inner * 4, n[field.x] + at * 4, inner)
                else:
                    for i in range(inner):
                        out[item * inner + i] = x[at + i]

        return kernel

    return build


build, of_bytes, of_shorts, of_words = _gather(int32s, 4), _gather(bools, 1), _gather(shorts, 2), _gather(int64s, 8)


@inline
def _place(wide, narrow, short, at, size, word):
    """Return an index, counted from the front; -1 for one that is outside, which sets the words of `error`."""
    index = narrow[at] if short else wide[at]
    place = index + (size if index < 0 else 0)
    if place < 0 or place >= size:
        word[2], word[1], word[0] = size, index, 1
        return -1
    return place


def _elements(pointer: Any) -> Any:
    field, rest = GATHER_ELEMENTS.at, GATHER_ELEMENTS.rest

    def build() -> Any:
        """Items are rows of the indices, all dims but the last."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, wide, narrow = pointer(n[field.x]), int64s(n[field.indices]), int32s(n[field.indices])
            out, word = pointer(n[field.out]), int64s(n[field.error])
            short, size, step, rank = n[field.is_short], n[field.size], n[field.step], n[field.rank]
            count, across = n[rest + rank - 1], n[rest + 2 * rank - 1]
            for item in range(begin, end):
                left, base = item, 0
                for axis in range(rank - 2, -1, -1):
                    base += left % n[rest + axis] * n[rest + rank + axis]
                    left //= n[rest + axis]
                for i in range(count):
                    place = _place(wide, narrow, short, item * count + i, size, word)
                    if place >= 0:
                        out[item * count + i] = x[base + i * across + place * step]

        return kernel

    return build


def _tuples(pointer: Any) -> Any:
    field, rest = GATHER_TUPLES.at, GATHER_TUPLES.rest

    def build() -> Any:
        """Items are (batch, tuple of indices); a batch has `rows` rows."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, wide, narrow = pointer(n[field.x]), int64s(n[field.indices]), int32s(n[field.indices])
            out, word = pointer(n[field.out]), int64s(n[field.error])
            short, count, inner, rows = n[field.is_short], n[field.count], n[field.inner], n[field.rows]
            rank = n[field.rank]
            for item in range(begin, end):
                row, inside = item // count * rows, True
                for axis in range(rank):
                    place = _place(wide, narrow, short, item * rank + axis, n[rest + axis], word)
                    inside = inside and place >= 0
                    row += place * n[rest + rank + axis]
                if inside:
                    for i in range(inner):
                        out[item * inner + i] = x[row * inner + i]

        return kernel

    return build


elements, elements_of_bytes, elements_of_shorts, elements_of_words = map(_elements, (int32s, bools, shorts, int64s))
tuples, tuples_of_bytes, tuples_of_shorts, tuples_of_words = map(_tuples, (int32s, bools, shorts, int64s))
