"""Functions that take tensors apart and join them: slices, pieces, diagonals and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import (
    apply,
    apply_all,
    axes_of,
    axis_of,
    cast,
    function,
    ints,
    known_size,
    number,
    together,
)
from perframe.functional.moving import flatten, movedim, ravel, reshape
from perframe.functional.sizes import Size, row_of, size_of, sizes_of
from perframe.functional.tensor import FunctionalTensor, Given, of_array, to_tensor
from perframe.tensor import DataType

END = 2**63 - 1  # a slice's end that no dim reaches
MAX_PIECES = 10_000  # each piece is a value of the model


# --- pieces ---


def limited(count: int) -> int:
    """Return a number of pieces. Raises InputError if they are too many."""
    if count > MAX_PIECES:
        raise InputError(f"{count} pieces are too many: at most {MAX_PIECES} are possible")
    return count


def cut(x: FunctionalTensor, at: int, first: int, end: int, step: int = 1) -> FunctionalTensor:
    """Return elements first..end of one dim, `step` apart, as Python's slices do."""
    return apply("Slice", x, ints(first), ints(end), ints(at), ints(step))


@function
def narrow(input: Given, dim: int, start: Size, length: Size) -> FunctionalTensor:
    """Return `length` elements of a dim from `start` on. Both may be tensors of one integer."""
    x = to_tensor(input)
    at = axis_of(x, dim)
    if isinstance(start, int) and isinstance(length, int) and isinstance(x.shape[at], int):
        first = start + x.shape[at] if start < 0 else start  # type: ignore[operator]
        if length < 0 or not 0 <= first <= first + length <= x.shape[at]:  # type: ignore[operator]
            raise InputError(f"dim {at} of {x.spec} has no {length} elements from {start} on")
        return cut(x, at, first, first + length)
    first_row, count = row_of([start], x), row_of([length], x)
    if isinstance(start, int) and start < 0:
        first_row = apply("Add", first_row, size_of(x, at))
    return apply("Slice", x, first_row, apply("Add", first_row, count), ints(at), ints(1))


@function
def select(input: Given, dim: int, index: Size) -> FunctionalTensor:
    """Return the slice at one index of a dim, without that dim. The index may be a tensor of one integer."""
    x = to_tensor(input)
    at = axis_of(x, dim)
    if isinstance(index, FunctionalTensor):
        row = cast(index, DataType.INT64)
        return apply("Gather", x, row if row.ndim == 0 else apply("Reshape", row, ints()), axis=at)
    if not isinstance(index, (int, np.integer)) or isinstance(index, bool):
        raise InputError(f"an index is an integer or a tensor, not {index!r}")
    size = x.shape[at] if x.shape else 0
    if isinstance(size, int) and not -size <= index < size:
        raise InputError(f"index {index} lies outside dim {at} of {x.spec}")
    return apply("Squeeze", cut(x, at, int(index), END if index == -1 else int(index) + 1), ints(at))


@function
def split(input: Given, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[FunctionalTensor, ...]:
    """Cut a dim into pieces of one size, the last of which may be smaller, or of the given sizes."""
    x = to_tensor(input)
    at = axis_of(x, dim)
    if isinstance(split_size_or_sections, (int, np.integer)):
        each, whole = int(split_size_or_sections), known_size(x, at, "split")
        if each < 1:
            raise InputError(f"the size of a piece is at least 1, not {each}")
        sizes = [min(each, whole - at * each) for at in range(limited(-(-whole // each)))] or [0]
    else:
        sizes = [int(one) for one in split_size_or_sections]
    return apply_all("Split", (x, ints(*sizes)), len(sizes), axis=at, num_outputs=len(sizes))


@function
def chunk(input: Given, chunks: int, dim: int = 0) -> tuple[FunctionalTensor, ...]:
    """Cut a dim into pieces of equal size, the last of which may be smaller, and of which there may be fewer."""
    x = to_tensor(input)
    if chunks < 1:
        raise InputError(f"the number of chunks is at least 1, not {chunks}")
    return split(x, max(1, -(-known_size(x, axis_of(x, dim), "chunk") // chunks)), dim)


@function
def unbind(input: Given, dim: int = 0) -> tuple[FunctionalTensor, ...]:
    """Return the slices along a dim, without that dim."""
    x = to_tensor(input)
    count = limited(known_size(x, axis_of(x, dim), "unbind"))
    return tuple(select(x, dim, index) for index in range(count))


@function
def flip(input: Given, dims: int | Sequence[int]) -> FunctionalTensor:
    """Return dims in reverse."""
    x = to_tensor(input)
    axes = axes_of(x, dims)
    if not axes:
        return x
    far = (-(2**63) + 1,) * len(axes)
    ones = (-1,) * len(axes)
    return apply("Slice", x, ints(*ones), ints(*far), ints(*axes), ints(*ones))


@function
def fliplr(input: Given) -> FunctionalTensor:
    """Return the columns (dim 1) in reverse."""
    return flip(input, 1)


@function
def flipud(input: Given) -> FunctionalTensor:
    """Return the rows (dim 0) in reverse."""
    return flip(input, 0)


@function
def roll(input: Given, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> FunctionalTensor:
    """Move elements along dims; those beyond the end come back at the begin."""
    x = to_tensor(input)
    if dims is None:
        return reshape(roll(ravel(x), shifts, 0), sizes_of(x))
    steps = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
    axes = axes_of(x, dims)
    if len(steps) != len(axes):
        raise InputError(f"{len(steps)} shifts do not fit {len(axes)} dims")
    for step, at in zip(steps, axes, strict=True):
        size = x.shape[at]
        by = int(step) % size if isinstance(size, int) and size else int(step)
        if by:
            x = apply("Concat", cut(x, at, -by, END), cut(x, at, 0, -by), axis=at)
    return x


# --- joined ---


@function
def cat(tensors: Sequence[Given], dim: int = 0) -> FunctionalTensor:
    """Join tensors along a dim."""
    given = together(*tensors)
    if len(given) == 1:
        return given[0]
    return apply("Concat", *given, axis=axis_of(given[0], dim))


@function
def stack(tensors: Sequence[Given], dim: int = 0) -> FunctionalTensor:
    """Join tensors of one shape along a new dim."""
    given = together(*tensors)
    at = axis_of(given[0], dim, more=1)
    if not all(x.shape.may_be(given[0].shape) for x in given):
        raise InputError(f"tensors of different shapes cannot be stacked: {', '.join(str(x.shape) for x in given)}")
    return cat([apply("Unsqueeze", x, ints(at)) for x in given], at)


concat = cat
concatenate = cat


# --- the same elements, otherwise ---


@function
def clone(input: Given) -> FunctionalTensor:
    """Return the input: values of a model never change, so there is nothing to copy."""
    return to_tensor(input)


@function
def tril(input: Given, diagonal: int = 0) -> FunctionalTensor:
    """Return the elements of matrices on and below a diagonal, and 0 above it."""
    return apply("Trilu", to_tensor(input), of_array(np.array(int(diagonal))), upper=0)


@function
def triu(input: Given, diagonal: int = 0) -> FunctionalTensor:
    """Return the elements of matrices on and above a diagonal, and 0 below it."""
    return apply("Trilu", to_tensor(input), of_array(np.array(int(diagonal))), upper=1)


@function
def diagonal(input: Given, offset: int = 0, dim1: int = 0, dim2: int = 1) -> FunctionalTensor:
    """Return a diagonal of the matrices in two dims, as the last dim."""
    x = to_tensor(input)
    first, second = axis_of(x, dim1), axis_of(x, dim2)
    if first == second:
        raise InputError(f"dims {dim1} and {dim2} are the same, and a matrix has two")
    rows, columns = (known_size(x, at, "diagonal") for at in (first, second))
    count = max(0, min(rows - max(-offset, 0), columns - max(offset, 0)))
    moved = movedim(x, (first, second), (-2, -1))
    flat = flatten(moved, -2, -1)
    begin = max(-offset, 0) * columns + max(offset, 0)
    return apply("Gather", flat, ints(*(begin + at * (columns + 1) for at in range(count))), axis=flat.ndim - 1)


@function
def as_strided(input: Given, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> FunctionalTensor:
    """Read the elements of a tensor, row by row, with other sizes and strides (in elements)."""
    x = to_tensor(input)
    if len(size) != len(stride):
        raise InputError(f"{len(size)} sizes and {len(stride)} strides are given")
    count: int = math.prod(size)
    if x.shape.is_static and count:
        last = storage_offset + sum((many - 1) * step for many, step in zip(size, stride, strict=True))
        if storage_offset < 0 or not 0 <= last < math.prod(x.shape.to_shape()):
            raise InputError(f"the last element would be number {last} of {x.spec}")
    where = np.full(tuple(size), storage_offset, np.int64)
    for at, (many, step) in enumerate(zip(size, stride, strict=True)):
        where += (np.arange(many) * step).reshape((-1, *(1,) * (len(size) - at - 1)))
    return apply("Gather", ravel(x), of_array(where), axis=0)


_PADDINGS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@function
def pad(
    input: Given,
    pad: Sequence[int],
    mode: Literal["constant", "reflect", "replicate", "circular"] = "constant",
    value: float | None = None,
) -> FunctionalTensor:
    """Add elements around a tensor: `pad` is (before, after) of the last dim, then of the dim before it, and so on.

    Negative numbers remove elements.
    """
    x = to_tensor(input)
    amounts = [int(amount) for amount in pad]
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise InputError(f"{len(amounts)} numbers are not pairs for the {x.ndim} dims of {x.spec}")
    if mode not in _PADDINGS:
        raise InputError(f"mode is one of {', '.join(_PADDINGS)}, not {mode!r}")
    axes = [x.ndim - 1 - at for at in range(len(amounts) // 2)]
    before, after = amounts[::2], amounts[1::2]
    for at, first, last in zip(axes, before, after, strict=True):
        if first < 0 or last < 0:
            x = cut(x, at, max(-first, 0), min(last, 0) or END)
    begin, end = [max(amount, 0) for amount in before], [max(amount, 0) for amount in after]
    if not any((*begin, *end)):
        return x
    filler = number(value or 0, x) if mode == "constant" else None
    return apply("Pad", x, ints(*begin, *end), filler, ints(*axes), mode=_PADDINGS[mode])
