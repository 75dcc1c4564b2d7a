"""The dtype in which an operation combines its operands, by PyTorch's rules.

A bool gives way to an integer, and an integer to a float. Within these categories tensors with dims decide before
tensors without, and both before Python numbers. Source: https://pytorch.org/docs/stable/tensor_attributes.html
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from perframe.errors import InputError
from perframe.functional.tensor import FunctionalTensor
from perframe.tensor import DataType

_CATEGORIES = {"b": 0, "u": 1, "i": 1, "f": 2}


def category(dtype: DataType) -> int:
    """Return 0 for bool, 1 for integers and 2 for floats. Raises InputError for another dtype."""
    found = 2 if dtype.is_float else _CATEGORIES.get(dtype.numpy.kind)
    if found is None:
        raise InputError(f"dtype {dtype} takes no part in arithmetic")
    return found


def promote(a: DataType, b: DataType) -> DataType:
    """Return the smallest dtype of the higher category that holds both."""
    if a is b or category(b) < category(a):
        return a
    if category(a) < category(b):
        return b
    if {a, b} == {DataType.FLOAT16, DataType.BFLOAT16}:
        return DataType.FLOAT32
    try:
        found = DataType.of(np.promote_types(a.numpy, b.numpy))
    except TypeError:
        found = DataType.STRING
    if category(a) != (2 if found.is_float else _CATEGORIES.get(found.numpy.kind)):
        raise InputError(f"no dtype holds both {a} and {b}: convert one of them, as in x.to(pf.DataType.INT64)")
    return found


def common_dtype(tensors: Iterable[FunctionalTensor]) -> DataType:
    """Return the dtype in which an operation combines these tensors. Raises InputError if they have none."""
    tensors = list(tensors)
    decides = [tensor for tensor in tensors if not tensor.follows]
    if any(category(tensor.dtype) == 2 for tensor in decides):
        tensors = decides
    groups: tuple[list[DataType], list[DataType], list[DataType]] = ([], [], [])
    for tensor in tensors:
        rank = None if tensor.spec.shape is None else len(tensor.spec.shape)
        groups[0 if tensor.is_number else 1 if rank == 0 else 2].append(tensor.dtype)
    found: DataType | None = None
    for group in groups:
        if group:
            own = reduce(promote, group)
            found = own if found is None or category(own) >= category(found) else found
    if found is None:
        raise InputError("there is no tensor whose dtype could decide")
    return found
