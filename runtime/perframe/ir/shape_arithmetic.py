"""Shape arithmetic on partly known values: forms compute the values of their outputs with NumPy.

A form takes part if it has `of_values`, which takes partial tensors as inputs and returns the values of an output, in
any shape of the output's size. Values that follow from numbers alone are computed in the layer's dtype. All others are
computed with symbolic sizes, or are unknown (None) where the answer to a question depends on sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir.sizes.names import NAMES, is_known
from perframe.ir.sizes.partial import Dim, PartialTensor, dim_of
from perframe.ir.sizes.scope import NotKnownError
from perframe.ir.sizes.size import Size, is_symbolic
from perframe.tensor import DataType

Values = NDArray[Any]  # numbers; as objects also symbolic sizes, and None for an unknown value

MAX_VALUES = 1024  # larger tensors are not shape arithmetic, and their values are not followed
MAX_UNKNOWN = 64  # the limit for tensors without any known value
FOLLOWED = (DataType.INT64, DataType.INT32, DataType.BOOL, DataType.FLOAT32, DataType.FLOAT64)
_EXACT = (DataType.INT64, DataType.INT32)  # these dtypes hold the size of any dim exactly


def is_followed(tensor: PartialTensor) -> bool:
    """Whether shape arithmetic follows the values: there are not too many, and they are not unknown floats."""
    if tensor.values is not None and tensor.value is None:
        return True
    if tensor.dtype not in FOLLOWED or tensor.kind != "tensor":
        return False
    if tensor.values is not None:
        return tensor.values.size <= MAX_VALUES
    size = None if tensor.dtype.is_float or tensor.shape is None else tensor.shape.size
    # not with a symbolic size: its values, as many as the size, would hold for this size alone
    return size is not None and not is_symbolic(size) and size <= MAX_UNKNOWN


def numbers_of(tensor: PartialTensor) -> Values:
    """Return the values of a followed tensor as objects, None for each unknown one."""
    if tensor.values is not None:
        return np.asarray(tensor.values).astype(object)
    assert tensor.shape is not None
    return np.full(tensor.shape.to_shape(), None, object)


def listed(numbers: PartialTensor | None) -> tuple[Dim, ...] | None:
    """Return a list of integers as dims, None for each unknown one; or None if its length is unknown."""
    if numbers is None:
        return None
    if numbers.values is not None and numbers.values.ndim <= 1 and numbers.dtype.numpy.kind in "iu":
        return tuple(map(dim_of, numbers.values.ravel().tolist()))
    count = numbers.shape[0] if numbers.shape is not None and len(numbers.shape) == 1 else None
    return (None,) * count if isinstance(count, int) else None


def listed_of(numbers: PartialTensor, count: int) -> tuple[Dim, ...]:
    """Return a list of integers as dims; if its length is unknown, `count` unknown ones."""
    known = listed(numbers)
    return (None,) * count if known is None else known


def each(
    function: Callable[..., Any], columns: Sequence[Values], dtypes: Sequence[np.dtype[Any]], made: DataType
) -> Values:
    """Apply `function` to one value of each column at a time. All columns and the result have the same length.

    Columns of objects may have symbolic and unknown values.
    """
    if all(column.dtype != object for column in columns):
        with np.errstate(all="ignore"):
            found = function(*[column.astype(dtype) for column, dtype in zip(columns, dtypes, strict=True)])
            return np.broadcast_to(np.asarray(found).astype(made.numpy), columns[0].shape)
    result: Values = np.full(columns[0].shape, None, object)
    numbers = np.array([all(map(_is_plain, row)) for row in zip(*columns, strict=True)], bool)
    with np.errstate(all="ignore"):
        if numbers.any():
            given = [column[numbers].astype(dtype) for column, dtype in zip(columns, dtypes, strict=True)]
            found = np.asarray(function(*given)).astype(made.numpy)
            result[numbers] = np.broadcast_to(found, numbers.sum()).tolist()
        if all(dtype.kind in "ib" for dtype in dtypes):
            for index in np.flatnonzero(~numbers):
                row = [column[index] for column in columns]
                result[index] = _follows(function, row, made) if any(value is not None for value in row) else None
    return result


def _is_plain(value: Any) -> bool:
    return value is not None and not is_symbolic(value)


def _follows(function: Callable[..., Any], row: Sequence[Any], made: DataType) -> Any:
    """Return the value that `function` makes of a row with symbolic or unknown values; None if it is unknown."""
    cells = np.empty((len(row), 1), object)
    cells[:, 0] = [NAMES.unknown() if value is None else value for value in row]
    try:
        found = np.ravel(function(*cells))[0]
    except (NotKnownError, TypeError, AttributeError, ArithmeticError):  # an operation that sizes do not have
        return None
    if type(found) is Size:
        exact = made in _EXACT and (found.scope is not NAMES or is_known(found.terms))
        return found if exact else None
    return made.numpy.type(found).item()
