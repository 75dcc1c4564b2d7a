"""Functions that give tensors other shapes: dims joined, split, moved and repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import (
    apply,
    axes_of,
    axis_of,
    function,
    ints,
    known_size,
)
from perframe.functional.sizes import Sizes, join, listed, row_of, size_of, sizes_of
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor

# --- shapes ---


@function
def reshape(input: Given, *shape: Any) -> FunctionalTensor:
    """Return the elements in another shape. -1 stands for the rest, a name for the size of that dim of the input."""
    x = to_tensor(input)
    sizes = row_of(listed(shape), x)
    return apply("Reshape", x, sizes, allowzero=1)


@function
def size(input: Given, dim: int | None = None) -> FunctionalTensor:
    """Return the sizes of all dims as int64, or of one dim as an int64 without dims (PyTorch: numbers of Python)."""
    x = to_tensor(input)
    if dim is None:
        return sizes_of(x)
    return apply("Squeeze", size_of(x, axis_of(x, dim)), ints(0))


@function
def numel(input: Given) -> FunctionalTensor:
    """Return the number of elements as an int64 without dims (PyTorch: a number of Python)."""
    return apply("Size", to_tensor(input))


@function
def flatten(input: Given, start_dim: int = 0, end_dim: int = -1) -> FunctionalTensor:
    """Join the dims from start_dim to end_dim."""
    x = to_tensor(input)
    first, last = axis_of(x, start_dim), axis_of(x, end_dim)
    if first > last:
        raise InputError(f"start_dim {start_dim} comes behind end_dim {end_dim}")
    if x.ndim and first == last:
        return x
    if all(isinstance(dim, int) for dim in (*x.shape[:first], *x.shape[last + 1 :])) and 0 not in x.shape:
        return apply("Reshape", x, ints(*x.shape[:first], -1, *x.shape[last + 1 :]))  # type: ignore[arg-type]
    whole = apply("ReduceProd", sizes_of(x, first, last + 1), keepdims=1)
    return apply("Reshape", x, join([sizes_of(x, 0, first), whole, sizes_of(x, last + 1)]), allowzero=1)


@function
def ravel(input: Given) -> FunctionalTensor:
    """Return all elements in one row."""
    return flatten(input)


@function
def unflatten(input: Given, dim: int, sizes: Sizes) -> FunctionalTensor:
    """Split one dim into several; one size may be -1."""
    x = to_tensor(input)
    at = axis_of(x, dim)
    return apply("Reshape", x, join([sizes_of(x, 0, at), row_of(sizes, x), sizes_of(x, at + 1)]))


@function
def squeeze(input: Given, dim: int | Sequence[int] | None = None) -> FunctionalTensor:
    """Remove the dims of size 1, or those among the given dims."""
    x = to_tensor(input)
    if x.ndim == 0:
        return x
    drop = [at for at in axes_of(x, dim) if x.shape[at] == 1]
    if dim is not None and any(not isinstance(x.shape[at], int) for at in axes_of(x, dim)):
        drop = list(axes_of(x, dim))  # a dim without a known size is asked for by name, so it is 1
    return apply("Squeeze", x, ints(*drop)) if drop else x


@function
def unsqueeze(input: Given, dim: int) -> FunctionalTensor:
    """Insert a dim of size 1."""
    x = to_tensor(input)
    return apply("Unsqueeze", x, ints(axis_of(x, dim, more=1)))


@function
def atleast_1d(*tensors: Given) -> Any:
    """Return tensors with at least one dim."""
    return _at_least(1, tensors)


@function
def atleast_2d(*tensors: Given) -> Any:
    """Return tensors with at least two dims; new ones come first."""
    return _at_least(2, tensors)


@function
def atleast_3d(*tensors: Given) -> Any:
    """Return tensors with at least three dims; the third comes last."""
    return _at_least(3, tensors)


def _at_least(rank: int, tensors: Sequence[Any]) -> Any:
    several = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
    found = []
    for value in tensors[0] if several else tensors:
        x = to_tensor(value)
        for have in range(x.ndim, rank):
            x = unsqueeze(x, -1 if have == 2 else 0)
        found.append(x)
    return tuple(found) if several or len(found) > 1 else found[0]


# --- the order of dims ---


@function
def permute(input: Given, *dims: Any) -> FunctionalTensor:
    """Return the dims in another order."""
    x = to_tensor(input)
    order = axes_of(x, listed(dims))  # type: ignore[arg-type]
    if len(order) != x.ndim:
        raise InputError(f"{len(order)} dims are given, and there are {x.ndim}")
    return x if order == tuple(range(x.ndim)) else apply("Transpose", x, perm=order)


@function
def transpose(input: Given, dim0: int, dim1: int) -> FunctionalTensor:
    """Exchange two dims."""
    x = to_tensor(input)
    order = list(range(x.ndim))
    first, second = axis_of(x, dim0), axis_of(x, dim1)
    if order:
        order[first], order[second] = second, first
    return permute(x, order)


@function
def t(input: Given) -> FunctionalTensor:
    """Exchange the two dims of a matrix; a tensor with fewer dims stays."""
    x = to_tensor(input)
    if x.ndim > 2:
        raise InputError(f"{x.spec} has more than two dims: use transpose or permute")
    return permute(x, range(x.ndim)[::-1])


@function
def movedim(input: Given, source: int | Sequence[int], destination: int | Sequence[int]) -> FunctionalTensor:
    """Move dims to other places; the others keep their order."""
    x = to_tensor(input)
    here, there = axes_of(x, source), axes_of(x, destination)
    if len(here) != len(there):
        raise InputError(f"{len(here)} dims cannot move to {len(there)} places")
    order = [axis for axis in range(x.ndim) if axis not in here]
    for place, axis in sorted(zip(there, here, strict=True)):
        order.insert(place, axis)
    return permute(x, order)


moveaxis = movedim
swapaxes = transpose
swapdims = transpose
view = reshape


# --- larger and repeated ---


@function
def broadcast_to(input: Given, shape: Sizes) -> FunctionalTensor:
    """Repeat dims of size 1, and new dims in front, so that the shape is reached. -1 keeps a dim."""
    x = to_tensor(input)
    if not isinstance(shape, FunctionalTensor):
        ahead = len(shape) - x.ndim
        if ahead < 0:
            raise InputError(f"{x.spec} has more dims than the shape {tuple(shape)}")
        shape = [
            1 if isinstance(size, int) and size == -1 and at >= ahead else size for at, size in enumerate(shape)
        ]  # Expand keeps a dim for a size of 1
    return apply("Expand", x, row_of(shape, x))


@function
def expand(input: Given, *sizes: Any) -> FunctionalTensor:
    """Repeat dims of size 1, and new dims in front, so that the sizes are reached. -1 keeps a dim."""
    return broadcast_to(input, listed(sizes))


@function
def expand_as(input: Given, other: Given) -> FunctionalTensor:
    """Repeat dims of size 1 so that the shape of another tensor is reached."""
    return apply("Expand", to_tensor(input), sizes_of(to_tensor(other)))


@function
def tile(input: Given, *dims: Any) -> FunctionalTensor:
    """Repeat the whole tensor along its last dims; missing counts are 1."""
    x = to_tensor(input)
    counts = listed(dims)
    known = len(counts) if not isinstance(counts, FunctionalTensor) else known_size(counts, 0, "tile")
    if known > x.ndim:
        x = apply("Unsqueeze", x, ints(*range(known - x.ndim)))
    return apply("Tile", x, join([ints(*(1,) * (x.ndim - known)), row_of(counts, x)]))


@function
def repeat(input: Given, *repeats: Any) -> FunctionalTensor:
    """Repeat the whole tensor along its dims: a count for each dim, and more of them for new dims in front."""
    x, counts = to_tensor(input), listed(repeats)
    if not isinstance(counts, FunctionalTensor) and len(counts) < x.ndim:
        raise InputError(f"{len(counts)} counts are fewer than the dims of {x.spec}")
    return tile(x, counts)


@function
def repeat_interleave(input: Given, repeats: int, dim: int | None = None) -> FunctionalTensor:
    """Repeat each element, or each slice along a dim, a number of times."""
    x = to_tensor(input)
    if not isinstance(repeats, (int, np.integer)) or repeats < 0:
        raise InputError(f"repeats is one number from 0, not {repeats!r:.80}")
    if dim is None:
        x, dim = ravel(x), 0
    at = axis_of(x, dim)
    counts = [1] * (x.ndim + 1)
    counts[at + 1] = int(repeats)
    wide = apply("Tile", apply("Unsqueeze", x, ints(at + 1)), ints(*counts))
    return flatten(wide, at, at + 1)
