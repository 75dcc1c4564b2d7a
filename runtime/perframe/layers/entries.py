"""Shape arithmetic on partly known values: forms compute the entries of their outputs with NumPy.

A form takes part if it has `of_entries`, which takes partial tensors as inputs and returns the entries of an output, in
any shape of the output's size. An entry that follows from numbers alone is computed in the layer's dtype. Any other
entry is computed with symbols, or is unknown if symbols do not support an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from perframe.sizes.traced import is_followed
from perframe.tensor import DataType
from perframe.tensor.partial import Dim, NotKnownError, PartialTensor, Symbol, is_number, to_entry, to_number

Entries = NDArray[Any]  # of numbers, names of dims, and None for an unknown entry

_NAMEABLE = (DataType.INT64, DataType.INT32)  # these dtypes hold the size of any dim exactly


def listed(numbers: PartialTensor | None) -> tuple[Dim, ...] | None:
    """Return the entries of a list of integers, None for each unknown one; or None if its length is unknown."""
    if numbers is None or numbers.elements is not None:
        return None if numbers is None else numbers.elements
    count = numbers.shape[0] if numbers.shape is not None and len(numbers.shape) == 1 else None
    return (None,) * count if isinstance(count, int) else None


def listed_of(numbers: PartialTensor, count: int) -> tuple[Dim, ...]:
    """Return the entries of a list; if its length is unknown, `count` unknown entries."""
    known = listed(numbers)
    return (None,) * count if known is None else known


@runtime_checkable
class Entrywise(Protocol):
    """A form that computes entries of its output from entries of its inputs."""

    def of_entries(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Entries:
        """Return the entries of an output. The inputs have entries."""


def each(
    function: Callable[..., Any], columns: Sequence[Entries], dtypes: Sequence[np.dtype[Any]], made: DataType
) -> Entries:
    """Apply `function` to one entry of each column at a time. All columns and the result have the same length.

    Columns of objects may have unknown entries.
    """
    if all(column.dtype != object for column in columns):
        with np.errstate(all="ignore"):
            found = function(*[column.astype(dtype) for column, dtype in zip(columns, dtypes, strict=True)])
            return np.broadcast_to(np.asarray(found).astype(made.numpy), columns[0].shape)
    result: Entries = np.full(columns[0].shape, None, object)
    numbers = np.array([all(map(_is_fixed, row)) for row in zip(*columns, strict=True)], bool)
    with np.errstate(all="ignore"):
        if numbers.any():
            given = [column[numbers].astype(dtype) for column, dtype in zip(columns, dtypes, strict=True)]
            found = np.asarray(function(*given)).astype(made.numpy)
            result[numbers] = np.broadcast_to(found, numbers.sum()).tolist()
        if all(dtype.kind in "ib" for dtype in dtypes):
            for index in np.flatnonzero(~numbers):
                row = [column[index] for column in columns]
                result[index] = _follows(function, row, made) if any(entry is not None for entry in row) else None
    return result


def _is_fixed(entry: Any) -> bool:
    return is_number(entry) and not is_followed(entry)


def _follows(function: Callable[..., Any], row: Sequence[Any], made: DataType) -> Any:
    """Return the entry that `function` makes of a row with unknown entries or symbols; None if it is unknown."""
    cells = np.empty((len(row), 1), object)
    cells[:, 0] = [to_number(entry) for entry in row]
    try:
        found = np.ravel(function(*cells))[0]
    except (NotKnownError, TypeError, AttributeError, ArithmeticError):  # an operation that symbols do not have
        return None
    if isinstance(found, Symbol):
        return to_entry(found) if made in _NAMEABLE else None
    if is_followed(found) and made in _NAMEABLE:
        return found
    return made.numpy.type(found).item()
