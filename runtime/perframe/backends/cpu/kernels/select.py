"""The largest or smallest elements along an axis: the position of the first, or the first few in order. NaN is larger
than all numbers.
"""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.fields import ARG, TOP
from perframe.backends.cpu.kernels.memory import POINTERS, int64s
from perframe.backends.cpu.kernels.sizes import RUN
from perframe.backends.cpu.kernels.vector import stack_block

BESIDE = 64  # elements of a row that are compared side by side


@inline
def _larger(a, b):
    return (a > b) | ((a != a) & (b == b))


@inline
def _first(a, b, largest):
    """Whether a comes before b: the larger first if `largest`, else the smaller."""
    return _larger(a, b) if largest else _larger(b, a)


def _places(dtype: str) -> Any:
    field = ARG.at
    pointer = POINTERS[dtype]

    def build() -> Any:
        """Items are rows if `inner` is 1, else (outer, run of columns)."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            size, inner, largest = n[field.size], n[field.inner], n[field.takes_largest] != 0
            last = n[field.takes_last] != 0
            x, out = pointer(n[field.x]), int64s(n[field.out])
            memory = stack_block()
            best, places = pointer(memory), int64s(memory + RUN * 8)
            runs = (inner + RUN - 1) // RUN
            for item in range(begin, end):
                if inner == 1:
                    at, wide = item * size, min(BESIDE, size)  # the best of interleaved runs, then of these
                    for i in range(wide):
                        best[i], places[i] = x[at + i], i
                    for k in range(wide, size, BESIDE):
                        for i in range(min(BESIDE, size - k)):
                            value, found = x[at + k + i], best[i]
                            takes = _first(value, found, largest) | (last & (not _first(found, value, largest)))
                            best[i] = value if takes else found
                            places[i] = k + i if takes else places[i]
                    found, place = best[0], places[0]
                    for i in range(1, wide):
                        value = best[i]
                        equal = not _first(value, found, largest) and not _first(found, value, largest)
                        if (places[i] > place) == last if equal else _first(value, found, largest):
                            found, place = value, places[i]
                    out[item] = place
                else:
                    first = item % runs * RUN
                    wide, at = min(RUN, inner - first), item // runs * size * inner + first
                    to = item // runs * inner + first
                    for i in range(wide):
                        best[i] = x[at + i]
                        out[to + i] = 0
                    for k in range(1, size):
                        for i in range(wide):
                            value, found = x[at + k * inner + i], best[i]
                            takes = _first(value, found, largest) | (last & (not _first(found, value, largest)))
                            best[i] = value if takes else found
                            out[to + i] = k if takes else out[to + i]

        return kernel

    return build


build, of_int32, of_int64 = _places("float32"), _places("int32"), _places("int64")


def _top(dtype: str) -> Any:
    field = TOP.at
    pointer = POINTERS[dtype]

    @inline
    def _before(values, places, i, value, place, largest):
        """Whether element i comes before the given one. Of equal elements, the one with the lower position does."""
        if _first(values[i], value, largest):
            return True
        return not _first(value, values[i], largest) and places[i] < place

    @inline
    def _sink(values, places, at, step, count, value, place, largest):
        """Replace the top of a heap of `count` elements. The top is the element that comes last in the order."""
        hole = 0
        while True:
            child = 2 * hole + 1
            if child >= count:
                break
            here, other = at + child * step, at + (child + 1) * step
            if child + 1 < count and _before(values, places, here, values[other], places[other], largest):
                child, here = child + 1, other
            if _before(values, places, here, value, place, largest):
                break
            values[at + hole * step], places[at + hole * step] = values[here], places[here]
            hole = child
        values[at + hole * step], places[at + hole * step] = value, place

    @inline
    def _rise(values, places, at, step, hole, value, place, largest):
        """Add an element at the end of a heap."""
        while hole:
            above = at + (hole - 1) // 2 * step
            if not _before(values, places, above, value, place, largest):
                break
            values[at + hole * step], places[at + hole * step] = values[above], places[above]
            hole = (hole - 1) // 2
        values[at + hole * step], places[at + hole * step] = value, place

    def build() -> Any:
        """Items are rows. The elements chosen so far form a heap."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            size, inner, count, largest = n[field.size], n[field.inner], n[field.count], n[field.takes_largest] != 0
            x, values, places = pointer(n[field.x]), pointer(n[field.values]), int64s(n[field.indices])
            for item in range(begin, end):
                given = item // inner * size * inner + item % inner
                at = item // inner * count * inner + item % inner
                for k in range(size):
                    value = x[given + k * inner]
                    if k < count:
                        _rise(values, places, at, inner, k, value, k, largest)
                    elif _first(value, values[at], largest):  # a later element that is equal stays out
                        _sink(values, places, at, inner, count, value, k, largest)
                for left in range(count - 1, 0, -1):
                    end_at = at + left * inner
                    value, place = values[end_at], places[end_at]
                    values[end_at], places[end_at] = values[at], places[at]
                    _sink(values, places, at, inner, left, value, place, largest)

        return kernel

    return build


top, top_of_int32, top_of_int64 = _top("float32"), _top("int32"), _top("int64")
