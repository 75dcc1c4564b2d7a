"""Functions that read and replace elements at indices."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, apply_all, axis_of, cast, function, ints, known_size, number, together
from perframe.functional.logic import where
from perframe.functional.moving import movedim, ravel, unsqueeze
from perframe.functional.pieces import END, cut
from perframe.functional.promotion import category
from perframe.functional.reductions import amax
from perframe.functional.sizes import sizes_of
from perframe.functional.tensor import FunctionalTensor, Given, of_array, to_tensor
from perframe.tensor import DataType


def to_index(index: Given) -> FunctionalTensor:
    """Return indices as int64. Raises InputError for floats and bools."""
    found = to_tensor(index)
    if category(found.dtype) != 1:
        raise InputError(f"indices are integers, not {found.dtype}")
    return cast(found, DataType.INT64)


@function
def gather(input: Given, dim: int, index: Given) -> FunctionalTensor:
    """Return the elements at indices along a dim; the result has the shape of the index."""
    x = to_tensor(input)
    return apply("GatherElements", x, to_index(index), axis=axis_of(x, dim))


@function
def take_along_dim(input: Given, indices: Given, dim: int | None = None) -> FunctionalTensor:
    """Return the elements at indices along a dim, or in the flattened input; the other dims broadcast."""
    x, index = to_tensor(input), to_index(indices)
    if dim is None:
        return gather(ravel(x), 0, ravel(index))
    at = axis_of(x, dim)
    if index.ndim != x.ndim:
        raise InputError(f"the indices {index.spec} do not have the number of dims of {x.spec}")
    others = [one for one in range(x.ndim) if one != at]
    if all(isinstance(x.shape[one], int) and x.shape[one] == index.shape[one] for one in others):
        return gather(x, at, index)
    sizes = [sizes_of(x, one, one + 1) if one != at else ints(1) for one in range(x.ndim)]
    wide = apply("Expand", index, apply("Concat", *sizes, axis=0))
    sizes = [sizes_of(index, one, one + 1) if one != at else ints(1) for one in range(x.ndim)]
    return gather(apply("Expand", x, apply("Concat", *sizes, axis=0)), at, wide)


@function
def index_select(input: Given, dim: int, index: Given) -> FunctionalTensor:
    """Return the slices at a row of indices along a dim."""
    x, row = to_tensor(input), to_index(index)
    if row.ndim > 1:
        raise InputError(f"the indices are one row, not {row.spec}")
    return apply("Gather", x, unsqueeze(row, 0) if row.ndim == 0 else row, axis=axis_of(x, dim))


@function
def take(input: Given, index: Given) -> FunctionalTensor:
    """Return the elements at indices of the flattened input; the result has the shape of the index."""
    return apply("Gather", ravel(to_tensor(input)), to_index(index), axis=0)


@function
def embedding(input: Given, weight: Given, padding_idx: int | None = None) -> FunctionalTensor:
    """Return the rows of a table at indices. `padding_idx` matters only to training."""
    return apply("Gather", to_tensor(weight), to_index(input), axis=0)


@function
def nonzero(input: Given, *, as_tuple: bool = False) -> Any:
    """Return the indices of elements that are not 0, a row each; with `as_tuple`, a row for each dim."""
    x = to_tensor(input)
    found = apply("NonZero", x)
    if as_tuple:
        return tuple(apply("Gather", found, of_array(np.array(at)), axis=0) for at in range(x.ndim))
    return apply("Transpose", found, perm=(1, 0))


@function
def argwhere(input: Given) -> FunctionalTensor:
    """Return the indices of elements that are not 0, a row each."""
    return nonzero(input)  # type: ignore[no-any-return]


@function
def masked_fill(input: Given, mask: Given, value: Given) -> FunctionalTensor:
    """Replace the elements where a mask holds by a value."""
    x = to_tensor(input)
    return where(mask, cast(value, x.dtype), x)  # type: ignore[no-any-return]


@function
def masked_select(input: Given, mask: Given) -> FunctionalTensor:
    """Return the elements where a mask holds, in one row. Its length is known when the model runs."""
    x, chosen = to_tensor(input), cast(mask, DataType.BOOL)
    if x.shape != chosen.shape or not x.shape.is_static:
        x, chosen = apply("Expand", x, sizes_of(chosen)), apply("Expand", chosen, sizes_of(x))
    return apply("Compress", ravel(x), ravel(chosen), axis=0)


@function
def unique(
    input: Given,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the different elements (or slices along a dim), and if asked for, where each went and how often it is."""
    x = to_tensor(input)
    at = None if dim is None else axis_of(x, dim)
    values, _, inverse, counts = apply_all("Unique", (x,), 4, axis=at, sorted=int(bool(sorted)))
    if return_inverse and at is None:
        inverse = apply("Reshape", inverse, sizes_of(x))
    found = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return tuple(found) if len(found) > 1 else values


@function
def one_hot(tensor: Given, num_classes: int = -1) -> FunctionalTensor:
    """Return int64 rows with 1 at an index and 0 elsewhere. With -1 the number of classes follows from the data."""
    index = to_index(tensor)
    classes = ints(int(num_classes))
    if num_classes < 0:
        classes = apply("Add", unsqueeze(amax(index), 0), ints(1))
    return apply("OneHot", index, classes, ints(0, 1), axis=-1)


# --- replaced elements ---

_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add", "multiply": "mul"}


def _updates(src: Given, x: FunctionalTensor, index: FunctionalTensor) -> FunctionalTensor:
    """Return updates of the shape of the index: the begin of a larger source, or one number for all."""
    updates = to_tensor(src)
    if updates.is_number or not updates.ndim:
        return apply("Expand", cast(updates, x.dtype), sizes_of(index))
    if updates.dtype is not x.dtype:
        raise InputError(f"the source is {updates.dtype} and the input {x.dtype}: convert one of them")
    if updates.shape == index.shape:
        return updates
    if updates.ndim != index.ndim:
        raise InputError(f"the source {updates.spec} does not have the number of dims of the index {index.spec}")
    axes = range(index.ndim)
    return apply("Slice", updates, ints(*(0 for _ in axes)), sizes_of(index), ints(*axes))


def _scatter(x: FunctionalTensor, dim: int, index: Given, src: Given, reduction: str = "none") -> FunctionalTensor:
    where_to = to_index(index)
    at = axis_of(x, dim)
    return apply("ScatterElements", x, where_to, _updates(src, x, where_to), axis=at, reduction=reduction)


@function
def scatter(
    input: Given,
    dim: int,
    index: Given,
    src: Given,
    *,
    reduce: Literal["add", "multiply"] | None = None,
) -> FunctionalTensor:
    """Replace the elements at indices along a dim by those of `src`, or by one number; `reduce` joins them."""
    if reduce not in (None, "add", "multiply"):
        raise InputError(f"reduce is None, 'add' or 'multiply', not {reduce!r}")
    return _scatter(to_tensor(input), dim, index, src, "none" if reduce is None else _REDUCTIONS[reduce])


@function
def scatter_add(input: Given, dim: int, index: Given, src: Given) -> FunctionalTensor:
    """Add the elements of `src` at indices along a dim."""
    return _scatter(to_tensor(input), dim, index, src, "add")


@function
def scatter_reduce(
    input: Given,
    dim: int,
    index: Given,
    src: Given,
    reduce: Literal["sum", "prod", "mean", "amax", "amin"],
    *,
    include_self: bool = True,
) -> FunctionalTensor:
    """Join the elements of `src` at indices along a dim, with or without the input's own elements."""
    x = to_tensor(input)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise InputError(f"reduce is 'sum', 'prod', 'mean', 'amax' or 'amin', not {reduce!r}")
    if not include_self:
        x = _scatter(x, dim, index, number(_neutral(reduce, x.dtype), x))
    joined = _scatter(x, dim, index, src, "add" if reduce == "mean" else _REDUCTIONS[reduce])
    if reduce != "mean":
        return joined
    ones = apply("Expand", number(1, x), sizes_of(x))
    if not include_self:
        ones = _scatter(ones, dim, index, number(0, x))
    counts = apply("Max", _scatter(ones, dim, index, number(1, x), "add"), number(1, x))
    return apply("Div", joined, counts)


def _neutral(reduce: str, dtype: DataType) -> float:
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    limits = np.finfo(dtype.numpy) if dtype.is_float else np.iinfo(dtype.numpy)
    low, high = (-np.inf, np.inf) if dtype.is_float else (int(limits.min), int(limits.max))
    return low if reduce == "amax" else high


@function
def index_add(input: Given, dim: int, index: Given, source: Given, *, alpha: float = 1) -> FunctionalTensor:
    """Add alpha times the slices of `source` at a row of indices along a dim."""
    x, row = to_tensor(input), to_index(index)
    updates = cast(source, x.dtype)
    updates = updates if alpha == 1 else apply("Mul", updates, number(alpha, x))
    at = axis_of(x, dim)
    made = apply("ScatterND", movedim(x, at, 0), unsqueeze(row, 1), movedim(updates, at, 0), reduction="add")
    return movedim(made, 0, at)


@function
def slice_scatter(
    input: Given, src: Given, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> FunctionalTensor:
    """Replace the elements start..end of a dim, `step` apart, by those of `src`."""
    x, updates = together(input, src)
    at = axis_of(x, dim)
    first, last = 0 if start is None else start, END if end is None else end
    wanted = cut(x, at, first, last, step).shape
    if updates.ndim != x.ndim or not wanted.may_be(updates.shape):
        raise InputError(f"the source has the shape {updates.shape}, and the slice {wanted}")
    if step == 1:
        pieces = [cut(x, at, 0, first), updates, *([] if last >= END else [cut(x, at, last, END)])]
        return apply("Concat", *(piece for piece in pieces if piece.shape[at] != 0), axis=at)
    places = np.arange(*slice(first, last, step).indices(known_size(x, at, "a step other than 1")))
    column = of_array(places.reshape(-1, *(1,) * (x.ndim - at - 1)))
    return apply("ScatterElements", x, apply("Expand", column, sizes_of(updates)), updates, axis=at)


@function
def select_scatter(input: Given, src: Given, dim: int, index: int) -> FunctionalTensor:
    """Replace the slice at one index of a dim by `src`, which does not have that dim."""
    x = to_tensor(input)
    at, size = axis_of(x, dim), x.shape[axis_of(x, dim)]
    if isinstance(size, int) and not -size <= index < size:
        raise InputError(f"index {index} lies outside dim {at} of {x.spec}")
    return slice_scatter(x, unsqueeze(src, at), at, index, END if index == -1 else index + 1)
