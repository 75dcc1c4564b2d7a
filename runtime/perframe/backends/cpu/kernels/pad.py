"""Padding, of elements of 1, 2, 4 and 8 bytes."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.memory import bools, int32s, int64s, shorts
from perframe.backends.cpu.kernels.vector import copy_floats


def _padding(pointer: Any, size: int) -> Any:
    floats = size == 4

    def build() -> Any:
        """[x, out, value, places, rank, shape..., before, size]; items are rows of the output.

        `places` are for each axis, one after the other, where in the input each of its coordinates is read,
        negative where the value is. From `before` on a row has `size` elements that follow each other in the input.
        """

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, places = pointer(n[0]), pointer(n[1]), int64s(n[3])
            fill = pointer(n[2])[0]
            rank = n[4]
            total, before, whole = n[4 + rank], n[5 + rank], n[6 + rank]
            leading = 0
            for axis in range(rank - 1):
                leading += n[5 + axis]
            lines = n[3 + rank] if rank > 1 else 1
            line, plane, whole_plane = begin % lines, 0, True
            for item in range(begin, end):
                if line == 0 or item == begin:
                    rest, plane, whole_plane = item // lines, 0, True
                    first = leading - lines if rank > 1 else 0
                    for axis in range(rank - 3, -1, -1):
                        first -= n[5 + axis]
                        place = places[first + rest % n[5 + axis]]
                        rest //= n[5 + axis]
                        whole_plane = whole_plane and place >= 0
                        plane += place
                place = places[leading - lines + line] if rank > 1 else 0
                inside, at = whole_plane and place >= 0, plane + place
                line = line + 1 if line + 1 < lines else 0
                o = item * total
                if not inside:
                    for i in range(total):
                        out[o + i] = fill
                    continue
                for i in range(before):
                    place = places[leading + i]
                    out[o + i] = x[at + place] if place >= 0 else fill
                if whole:
                    source = at + places[leading + before]
                    if floats:
                        copy_floats(n[1] + (o + before) * 4, n[0] + source * 4, whole)
                    else:
                        for i in range(whole):
                            out[o + before + i] = x[source + i]
                for i in range(before + whole, total):
                    place = places[leading + i]
                    out[o + i] = x[at + place] if place >= 0 else fill

        return kernel

    return build


build, of_bytes, of_shorts, of_words = _padding(int32s, 4), _padding(bools, 1), _padding(shorts, 2), _padding(int64s, 8)
