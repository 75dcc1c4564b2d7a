"""Shapes in arguments: numbers, names of dims, and tensors that hold a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, ints
from perframe.functional.tensor import FunctionalTensor
from perframe.tensor import DataType

Size = int | str | FunctionalTensor  # of a dim: a number, the name of a dim of the input, or a tensor of one number
Sizes = Sequence[Size] | FunctionalTensor


def listed(sizes: tuple[Any, ...]) -> Sizes:
    """Return sizes that were given one by one, or as one list."""
    if len(sizes) == 1 and not isinstance(sizes[0], (int, str, np.integer)):
        only = sizes[0]
        if isinstance(only, FunctionalTensor) and only.ndim == 0:
            return [only]
        return only  # type: ignore[no-any-return]
    return sizes


def size_of(x: FunctionalTensor, axis: int) -> FunctionalTensor:
    """Return the size of one dim, as a row of one int64."""
    dim = x.shape[axis]
    return ints(dim) if isinstance(dim, int) else apply("Shape", x, start=axis, end=axis + 1)


def sizes_of(x: FunctionalTensor, first: int = 0, end: int | None = None) -> FunctionalTensor:
    """Return the sizes of dims first..end as a row of int64."""
    if x.spec.shape is not None and x.shape.is_static:
        return ints(*x.shape.to_shape()[first:end])
    return apply("Shape", x, start=first, end=end)


def row_of(sizes: Sizes, *named: FunctionalTensor) -> FunctionalTensor:
    """Return sizes as a row of int64. A name is the size of that dim of one of the tensors `named`.

    Raises InputError for a name that no dim has, and for anything that is not a size.
    """
    if isinstance(sizes, FunctionalTensor):
        return cast(sizes, DataType.INT64)
    if isinstance(sizes, (int, np.integer)):
        sizes = (int(sizes),)
    if all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in sizes):
        return ints(*(int(size) for size in sizes))  # type: ignore[arg-type]
    return join([_part(size, named) for size in sizes])


def join(parts: Sequence[FunctionalTensor]) -> FunctionalTensor:
    """Return rows of int64 one behind the other."""
    if all(part.is_constant for part in parts):
        return ints(*(int(number) for part in parts for number in np.ravel(part.spec.value)))  # type: ignore[arg-type]
    return parts[0] if len(parts) == 1 else apply("Concat", *parts, axis=0)


def _part(size: Size, named: Sequence[FunctionalTensor]) -> FunctionalTensor:
    if isinstance(size, FunctionalTensor):
        row = cast(size, DataType.INT64)
        return apply("Reshape", row, ints(1)) if row.ndim == 0 else row
    if isinstance(size, str):
        for tensor in named:
            if size in tensor.shape:
                return size_of(tensor, tensor.shape.index(size))
        known = sorted({dim for tensor in named for dim in tensor.shape if isinstance(dim, str)})
        raise InputError(f"no dim is named {size!r}; there are {known or 'no named dims'}")
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
        raise InputError(f"a size is an integer, the name of a dim or a tensor of one number, not {size!r}")
    return ints(int(size))
