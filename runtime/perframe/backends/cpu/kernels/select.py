"""The largest or smallest elements along an axis: the first position, or the first few. NaN is the largest."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import ARG, MARKS, TOP
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import POINTERS, floats, int64s
from perframe.backends.cpu.kernels.sizes import FEW_ELEMENTS, ROWS_TOGETHER, RUN
from perframe.backends.cpu.kernels.transpose import transpose
from perframe.backends.cpu.kernels.vector import stack_block, zero_floats

BESIDE = 64  # elements of a row that are compared side by side


@inline
def _larger(a, b):
    return (a > b) | ((a != a) & (b == b))


@inline
def _first(a, b, largest):
    """Whether a comes before b: the larger first if `largest`, else the smaller."""
    return _larger(a, b) if largest else _larger(b, a)


@inline
def _found(a, b, largest):
    """Whether the position of a is found before that of b. That of NaN comes first."""
    return _larger(a, b) if largest else (a < b) | ((a != a) & (b == b))


def _arg(dtype: str) -> Any:
    field = ARG.at
    pointer = POINTERS[dtype]
    width = 8 if dtype == "int64" else 4
    few = FEW_ELEMENTS if dtype != "int64" else 0  # elements have the size of those that `transpose` takes

    @inline
    def _columns(source, pitch, target, size, wide, memory, largest, last):
        """The positions in `wide` adjacent columns. The memory takes the best elements."""
        x, out, best = pointer(source), int64s(target), pointer(memory)
        for i in range(wide):
            best[i] = x[i]
            out[i] = 0
        for k in range(1, size):
            for i in range(wide):
                value, found = x[k * pitch + i], best[i]
                takes = _found(value, found, largest) | (last & (not _found(found, value, largest)))
                best[i] = value if takes else found
                out[i] = k if takes else out[i]

    def build() -> Any:
        """Items are rows if `inner` is 1, else (outer, run of columns)."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            size, inner, largest = n[field.size], n[field.inner], n[field.takes_largest] != 0
            last = n[field.takes_last] != 0
            x, out = pointer(n[field.x]), int64s(n[field.out])
            memory = stack_block()
            best, positions = pointer(memory), int64s(memory + RUN * 8)
            runs = (inner + RUN - 1) // RUN
            if inner == 1 and size <= few:
                begin, end = begin * ROWS_TOGETHER, min(end * ROWS_TOGETHER, n[field.outer])
                for row in range(begin, end, ROWS_TOGETHER):
                    rows, turned = min(ROWS_TOGETHER, end - row), memory + RUN * 4
                    transpose(n[field.x] + row * size * 4, size, turned, ROWS_TOGETHER, rows, size)
                    _columns(turned, ROWS_TOGETHER, n[field.out] + row * 8, size, rows, memory, largest, last)
                return
            for item in range(begin, end):
                if inner == 1:
                    at, wide = item * size, min(BESIDE, size)  # the best of interleaved runs, then of these
                    for i in range(wide):
                        best[i], positions[i] = x[at + i], i
                    for k in range(wide, size, BESIDE):
                        for i in range(min(BESIDE, size - k)):
                            value, found = x[at + k + i], best[i]
                            takes = _found(value, found, largest) | (last & (not _found(found, value, largest)))
                            best[i] = value if takes else found
                            positions[i] = k + i if takes else positions[i]
                    found, position = best[0], positions[0]
                    for i in range(1, wide):
                        value = best[i]
                        equal = not _found(value, found, largest) and not _found(found, value, largest)
                        if (positions[i] > position) == last if equal else _found(value, found, largest):
                            found, position = value, positions[i]
                    out[item] = position
                else:
                    first = item % runs * RUN
                    source = n[field.x] + (item // runs * size * inner + first) * width
                    target = n[field.out] + (item // runs * inner + first) * 8
                    _columns(source, inner, target, size, min(RUN, inner - first), memory, largest, last)

        return kernel

    return build


build, of_int32, of_int64 = _arg("float32"), _arg("int32"), _arg("int64")


def _top(dtype: str) -> Any:
    field = TOP.at
    pointer = POINTERS[dtype]

    @inline
    def _before(values, positions, i, value, position, largest):
        """Whether element i comes before the given one. Of equal elements, the one with the lower position does."""
        if _first(values[i], value, largest):
            return True
        return not _first(value, values[i], largest) and positions[i] < position

    @inline
    def _sink(values, positions, at, step, count, value, position, largest):
        """Replace the top of a heap of `count` elements. The top is the element that comes last in the order."""
        hole = 0
        while True:
            child = 2 * hole + 1
            if child >= count:
                break
            here, other = at + child * step, at + (child + 1) * step
            if child + 1 < count and _before(values, positions, here, values[other], positions[other], largest):
                child, here = child + 1, other
            if _before(values, positions, here, value, position, largest):
                break
            values[at + hole * step], positions[at + hole * step] = values[here], positions[here]
            hole = child
        values[at + hole * step], positions[at + hole * step] = value, position

    @inline
    def _rise(values, positions, at, step, hole, value, position, largest):
        """Add an element at the end of a heap."""
        while hole:
            above = at + (hole - 1) // 2 * step
            if not _before(values, positions, above, value, position, largest):
                break
            values[at + hole * step], positions[at + hole * step] = values[above], positions[above]
            hole = (hole - 1) // 2
        values[at + hole * step], positions[at + hole * step] = value, position

    def build() -> Any:
        """Items are rows. The elements chosen so far form a heap."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            size, inner, count, largest = n[field.size], n[field.inner], n[field.count], n[field.takes_largest] != 0
            x, values, positions = pointer(n[field.x]), pointer(n[field.values]), int64s(n[field.indices])
            for item in range(begin, end):
                given = item // inner * size * inner + item % inner
                at = item // inner * count * inner + item % inner
                for k in range(count):
                    _rise(values, positions, at, inner, k, x[given + k * inner], k, largest)
                for block in range(count, size, BESIDE):
                    stop = min(size, block + BESIDE)
                    if inner == 1:  # most blocks have no element that enters the heap
                        last, entering = values[at], 0
                        for k in range(block, stop):
                            entering += 1 if _first(x[given + k], last, largest) else 0
                        if entering == 0:
                            continue
                    for k in range(block, stop):
                        value = x[given + k * inner]
                        if _first(value, values[at], largest):  # a later element that is equal stays out
                            _sink(values, positions, at, inner, count, value, k, largest)
                for left in range(count - 1, 0, -1):
                    end_at = at + left * inner
                    value, position = values[end_at], positions[end_at]
                    values[end_at], positions[end_at] = values[at], positions[at]
                    _sink(values, positions, at, inner, left, value, position, largest)

        return kernel

    return build


top, top_of_int32, top_of_int64 = _top("float32"), _top("int32"), _top("int64")


def marks() -> Any:
    """1 at the positions, and 0 elsewhere. Items are (outer, index)."""
    field = MARKS.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        positions, out, size, inner = int64s(n[field.positions]), floats(n[field.out]), n[field.size], n[field.inner]
        if inner == 1:
            zero_floats(n[field.out] + begin * 4, end - begin)
            for row in range(begin // size, (end + size - 1) // size):
                at = row * size + positions[row]
                if begin <= at and at < end:
                    out[at] = float32(1)
            return
        for item in range(begin, end):
            row, index = item // size * inner, item % size
            for i in range(inner):
                out[item * inner + i] = float32(1 if positions[row + i] == index else 0)

    return kernel
