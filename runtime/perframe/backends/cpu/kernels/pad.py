"""Padding of elements of 1, 2, 4 and 8 bytes."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.fields import PAD
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.sizes import PAD_CONSTANT, PAD_EDGE, PAD_REFLECT
from perframe.backends.cpu.kernels.vector import copy_floats


@inline
def _coordinate(mode, at, size):
    """The input's coordinate for one of the output; -1 for the constant."""
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
    field, rest = PAD.at, PAD.rest
    floats = size == 4

    def build() -> Any:
        """Items are rows of the output. The `size` elements of a row from `before` on are adjacent in the input."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, mode = pointer(n[field.x]), pointer(n[field.out]), n[field.mode]
            fill = pointer(n[field.value])[0]
            before, whole, rank = n[field.before], n[field.size], n[field.rank]
            made, given, ahead = rest, rest + rank, rest + 2 * rank
            total, length, shift = n[made + rank - 1], n[given + rank - 1], n[ahead + rank - 1]
            lines, heights, above = 1, 1, 0
            if rank > 1:
                lines, heights, above = n[made + rank - 2], n[given + rank - 2], n[ahead + rank - 2]
            line, plane, whole_plane = begin % lines, 0, True
            for item in range(begin, end):
                if line == 0 or item == begin:
                    left, plane, whole_plane, stride = item // lines, 0, True, heights * length
                    for axis in range(rank - 3, -1, -1):
                        coordinate = _coordinate(mode, left % n[made + axis] - n[ahead + axis], n[given + axis])
                        left //= n[made + axis]
                        whole_plane = whole_plane and coordinate >= 0
                        plane += coordinate * stride
                        stride *= n[given + axis]
                coordinate = _coordinate(mode, line - above, heights)
                inside, at = whole_plane and coordinate >= 0, plane + coordinate * length
                line = line + 1 if line + 1 < lines else 0
                o = item * total
                if not inside:
                    for i in range(total):
                        out[o + i] = fill
                    continue
                for i in range(before):
                    coordinate = _coordinate(mode, i - shift, length)
                    out[o + i] = x[at + coordinate] if coordinate >= 0 else fill
                if whole:
                    source = at + before - shift
                    if floats:
                        copy_floats(n[field.out] + (o + before) * 4, n[field.x] + source * 4, whole)
                    else:
                        for i in range(whole):
                            out[o + before + i] = x[source + i]
                for i in range(before + whole, total):
                    coordinate = _coordinate(mode, i - shift, length)
                    out[o + i] = x[at + coordinate] if coordinate >= 0 else fill

        return kernel

    return build


build, of_bytes, of_shorts = _padding(int32s, 4), _padding(bools, 1), _padding(shorts, 2)
of_words = _padding(int64s, 8)
