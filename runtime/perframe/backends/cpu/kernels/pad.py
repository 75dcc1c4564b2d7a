"""Padding, of elements of 1, 2, 4 and 8 bytes."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.sizes import PAD_CONSTANT, PAD_EDGE, PAD_REFLECT
from perframe.backends.cpu.kernels.vector import copy_floats


@inline
def _place(mode, at, size):
    """Where a coordinate is read; -1 where the constant is."""
    if 0 <= at < size:
        return at
    if mode == PAD_CONSTANT:
        return -1
    if mode == PAD_EDGE:
        return min(max(at, 0), size - 1)
    turn = max(1, 2 * (size - 1)) if mode == PAD_REFLECT else size
    ahead = at % turn
    return min(ahead, turn - ahead) if mode == PAD_REFLECT else ahead


def _padding(pointer: Any, size: int) -> Any:
    floats = size == 4

    def build() -> Any:
        """[x, out, value, mode, before, size, rank, shape of out..., of x..., elements before x...]; items are rows of
        the output. From `before` on a row has `size` elements that follow each other in the input.
        """

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, mode = pointer(n[0]), pointer(n[1]), n[3]
            fill = pointer(n[2])[0]
            before, whole, rank = n[4], n[5], n[6]
            made, given, ahead = 7, 7 + rank, 7 + 2 * rank
            total, length, shift = n[made + rank - 1], n[given + rank - 1], n[ahead + rank - 1]
            lines, heights, above = 1, 1, 0
            if rank > 1:
                lines, heights, above = n[made + rank - 2], n[given + rank - 2], n[ahead + rank - 2]
            line, plane, whole_plane = begin % lines, 0, True
            for item in range(begin, end):
                if line == 0 or item == begin:
                    rest, plane, whole_plane, stride = item // lines, 0, True, heights * length
                    for axis in range(rank - 3, -1, -1):
                        place = _place(mode, rest % n[made + axis] - n[ahead + axis], n[given + axis])
                        rest //= n[made + axis]
                        whole_plane = whole_plane and place >= 0
                        plane += place * stride
                        stride *= n[given + axis]
                place = _place(mode, line - above, heights)
                inside, at = whole_plane and place >= 0, plane + place * length
                line = line + 1 if line + 1 < lines else 0
                o = item * total
                if not inside:
                    for i in range(total):
                        out[o + i] = fill
                    continue
                for i in range(before):
                    place = _place(mode, i - shift, length)
                    out[o + i] = x[at + place] if place >= 0 else fill
                if whole:
                    source = at + before - shift
                    if floats:
                        copy_floats(n[1] + (o + before) * 4, n[0] + source * 4, whole)
                    else:
                        for i in range(whole):
                            out[o + before + i] = x[source + i]
                for i in range(before + whole, total):
                    place = _place(mode, i - shift, length)
                    out[o + i] = x[at + place] if place >= 0 else fill

        return kernel

    return build


build, of_bytes, of_shorts, of_words = _padding(int32s, 4), _padding(bools, 1), _padding(shorts, 2), _padding(int64s, 8)
