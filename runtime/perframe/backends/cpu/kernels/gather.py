"""Gathering, of elements of 1, 2, 4 and 8 bytes."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.vector import copy_floats


def _gather(pointer: Any, size: int) -> Any:
    floats = size == 4

    def build() -> Any:
        """Items are (outer, index) pairs; an index outside leaves word: 1, and the index.

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
                    word[1] = index
                    word[0] = 1
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
