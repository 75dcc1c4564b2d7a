"""Gathering, of elements of 1, 2, 4 and 8 bytes."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.vector import copy_floats


def _gather(pointer: Any, size: int) -> Any:
    floats = size == 4

    def build() -> Any:
        """Items are (outer, index) pairs; an index outside leaves word: 1, the index, and the size.

        [x, indices, out, word, whether indices are of 32 bits, size, inner, count]
        """

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, wide, narrow, out, word = pointer(n[0]), int64s(n[1]), int32s(n[1]), pointer(n[2]), int64s(n[3])
            short, size, inner, count = n[4], n[5], n[6], n[7]
            for item in range(begin, end):
                place = item % count
                index = narrow[place] if short else wide[place]
                at = index + (size if index < 0 else 0)
                if at < 0 or at >= size:
                    word[2], word[1], word[0] = size, index, 1
                    continue
                at = (item // count * size + at) * inner
                if floats and inner > 1:
                    copy_floats(n[2] + item * inner * 4, n[0] + at * 4, inner)
                else:
                    for i in range(inner):
                        out[item * inner + i] = x[at + i]

        return kernel

    return build


build, of_bytes, of_shorts, of_words = _gather(int32s, 4), _gather(bools, 1), _gather(shorts, 2), _gather(int64s, 8)


@inline
def _place(wide, narrow, short, at, size, word):
    """An index, counted from the front; -1 where it is outside, which leaves word."""
    index = narrow[at] if short else wide[at]
    place = index + (size if index < 0 else 0)
    if place < 0 or place >= size:
        word[2], word[1], word[0] = size, index, 1
        return -1
    return place


def _elements(pointer: Any) -> Any:
    def build() -> Any:
        """Items are rows of the indices, all dims but the last.

        [x, indices, out, word, whether indices are of 32 bits, size, its step, rank, shape..., strides of x...]
        """

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, wide, narrow, out, word = pointer(n[0]), int64s(n[1]), int32s(n[1]), pointer(n[2]), int64s(n[3])
            short, size, step, rank = n[4], n[5], n[6], n[7]
            count, across = n[7 + rank], n[7 + 2 * rank]
            for item in range(begin, end):
                rest, base = item, 0
                for axis in range(rank - 2, -1, -1):
                    base += rest % n[8 + axis] * n[8 + rank + axis]
                    rest //= n[8 + axis]
                for i in range(count):
                    place = _place(wide, narrow, short, item * count + i, size, word)
                    if place >= 0:
                        out[item * count + i] = x[base + i * across + place * step]

        return kernel

    return build


def _tuples(pointer: Any) -> Any:
    def build() -> Any:
        """Items are (batch, tuple of indices).

        [x, indices, out, word, whether indices are of 32 bits, count, inner, rows of a batch, rank, dims..., strides in
        rows...]
        """

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, wide, narrow, out, word = pointer(n[0]), int64s(n[1]), int32s(n[1]), pointer(n[2]), int64s(n[3])
            short, count, inner, rows, rank = n[4], n[5], n[6], n[7], n[8]
            for item in range(begin, end):
                row, inside = item // count * rows, True
                for axis in range(rank):
                    place = _place(wide, narrow, short, item * rank + axis, n[9 + axis], word)
                    inside = inside and place >= 0
                    row += place * n[9 + rank + axis]
                if inside:
                    for i in range(inner):
                        out[item * inner + i] = x[row * inner + i]

        return kernel

    return build


elements, elements_of_bytes, elements_of_shorts, elements_of_words = map(_elements, (int32s, bools, shorts, int64s))
tuples, tuples_of_bytes, tuples_of_shorts, tuples_of_words = map(_tuples, (int32s, bools, shorts, int64s))
