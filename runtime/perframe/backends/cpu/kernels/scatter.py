"""Scattering: updates replace elements of the output, or are combined with them, in the order of the updates."""

from __future__ import annotations

from typing import Any

from numba import types

from perframe.backends.cpu.kernels.fields import (
    GATHER_ERROR,
    SCATTER_AGAIN,
    SCATTER_ELEMENTS,
    SCATTER_ROWS,
    SCATTER_TUPLES,
)
from perframe.backends.cpu.kernels.gather import find, read_indices
from perframe.backends.cpu.kernels.memory import POINTERS, int64s
from perframe.backends.cpu.kernels.sizes import RUN
from perframe.backends.cpu.kernels.strides import offset_of


def elements(dtype: str, combine: Any) -> Any:
    """Each element has its own index along one axis. Items are blocks of the last dim, in rows of the others."""
    field, rest = SCATTER_ELEMENTS.at, SCATTER_ELEMENTS.rest
    pointer, kind = POINTERS[dtype], getattr(types, dtype)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        indices = read_indices(n[field.indices], n[field.is_short], n[field.error])
        updates, out = pointer(n[field.updates]), pointer(n[field.out])
        size, step, count, update_step = n[field.size], n[field.step], n[field.count], n[field.update_step]
        inner, blocks, rank = n[field.inner], n[field.blocks], n[field.rank]
        for item in range(begin, end):
            row, first = item // blocks, item % blocks * RUN
            wide = min(RUN, inner - first)
            to = first + offset_of(n, rest, rest + rank, rank, row)
            start = first + offset_of(n, rest, rest + 2 * rank, rank, row)
            for k in range(count):
                for i in range(wide):
                    at = start + k * update_step + i
                    found = find(indices, at, size)
                    if found >= 0:
                        target = to + found * step + i
                        out[target] = kind(combine(out[target], updates[at]))

    return kernel


def tuples(dtype: str, combine: Any) -> Any:
    """Each row has a tuple of indices. Items are blocks of columns."""
    field, rest = SCATTER_TUPLES.at, SCATTER_TUPLES.rest
    pointer, kind = POINTERS[dtype], getattr(types, dtype)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        indices = read_indices(n[field.indices], n[field.is_short], n[field.error])
        updates, out = pointer(n[field.updates]), pointer(n[field.out])
        count, inner, rank, replaced = n[field.count], n[field.inner], n[field.rank], int64s(n[field.replaced])
        for item in range(begin, end):
            first, notes = item * RUN, n[field.notes] and item == 0
            wide = min(RUN, inner - first)
            for k in range(count):
                row, inside = 0, True
                for axis in range(rank):
                    found = find(indices, k * rank + axis, n[rest + axis])
                    inside = inside and found >= 0
                    row += found * n[rest + rank + axis]
                if notes:
                    replaced[k] = row if inside else -1
                if inside:
                    to, start = row * inner + first, k * inner + first
                    for i in range(wide):
                        out[to + i] = kind(combine(out[to + i], updates[start + i]))

    return kernel


def rows(dtype: str) -> Any:
    """`count` rows of each line follow each other; the lines of a batch have one first row. Items are these rows.

    A first row beyond `most` is an error. Rows beyond the end begin again at 0.
    """
    field, wrong, pointer = SCATTER_ROWS.at, GATHER_ERROR.at, POINTERS[dtype]

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        wide, narrow, is_short, error = read_indices(n[field.begins], n[field.is_short], n[field.error])
        updates, replaced, out = pointer(n[field.updates]), int64s(n[field.replaced]), pointer(n[field.out])
        lines, size, inner, count, most = n[field.lines], n[field.size], n[field.inner], n[field.count], n[field.most]
        for item in range(begin, end):
            line, first = item // count, 0
            if n[field.has_begin]:
                first = narrow[line // lines] if is_short else wide[line // lines]
            if most >= 0 and (first < 0 or first > most):
                error[wrong.size], error[wrong.index], error[wrong.is_wrong] = most, first, 1
                if n[field.notes]:
                    replaced[item] = -1
                continue
            row = line * size + (first + item % count) % size
            if n[field.notes]:
                replaced[item] = row
            to = row * inner
            for i in range(inner):
                out[to + i] = updates[item * inner + i]

    return kernel


def again(dtype: str) -> Any:
    """Copies the rows that an earlier run replaced. Items are these rows; a number that names no row is skipped."""
    field, pointer = SCATTER_AGAIN.at, POINTERS[dtype]

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, replaced, out = pointer(n[field.x]), int64s(n[field.replaced]), pointer(n[field.out])
        rows, inner = n[field.rows], n[field.inner]
        for item in range(begin, end):
            row = replaced[item]
            if 0 <= row < rows:
                for i in range(row * inner, row * inner + inner):
                    out[i] = x[i]

    return kernel
