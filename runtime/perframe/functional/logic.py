"""Functions of each element: comparison, logic, bits, and conversion between dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, function, number, second_name, together
from perframe.functional.elementwise import published
from perframe.functional.promotion import category
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.tensor import DataType

_FLOAT, _INT, _BOOL = DataType.FLOAT32, DataType.INT64, DataType.BOOL


@function
def ne(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` and `other` differ."""
    return apply("Not", apply("Equal", *together(input, other)))


@function
def isnan(input: Given) -> FunctionalTensor:
    """Return for each element whether it is NaN."""
    x = to_tensor(input)
    return apply("IsNaN", x) if category(x.dtype) == 2 else apply("Not", apply("Equal", x, x))


@function
def isinf(input: Given) -> FunctionalTensor:
    """Return for each element whether it is infinite."""
    x = to_tensor(input)
    return apply("IsInf", x) if category(x.dtype) == 2 else apply("Not", apply("Equal", x, x))


@function
def isfinite(input: Given) -> FunctionalTensor:
    """Return for each element whether it is a finite number."""
    x = to_tensor(input)
    if category(x.dtype) < 2:
        return apply("Equal", x, x)
    return apply("Not", apply("Or", apply("IsNaN", x), apply("IsInf", x)))


@function
def nan_to_num(
    input: Given, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> FunctionalTensor:
    """Replace NaN and infinities by numbers; infinities become the largest numbers of the dtype unless given."""
    x = to_tensor(input)
    if category(x.dtype) < 2:
        return x
    limit = np.finfo(x.dtype.numpy)
    x = apply("Where", apply("IsNaN", x), number(nan, x), x)
    low, high = number(-math.inf, x), number(math.inf, x)
    x = apply("Where", apply("Equal", x, high), number(float(limit.max) if posinf is None else posinf, x), x)
    return apply("Where", apply("Equal", x, low), number(float(limit.min) if neginf is None else neginf, x), x)


@function
def where(condition: Given, input: Given | None = None, other: Given | None = None) -> Any:
    """Return `input` where the condition holds, and `other` elsewhere. The condition alone gives nonzero's indices."""
    chosen = cast(condition, _BOOL)
    if input is None and other is None:
        from perframe.functional.gathering import nonzero

        return nonzero(chosen, as_tuple=True)
    if input is None or other is None:
        raise InputError("where needs both `input` and `other`, or none of them")
    return apply("Where", chosen, *together(input, other))


def _logic(op: str) -> Callable[..., FunctionalTensor]:
    def body(input: Given, other: Given) -> FunctionalTensor:
        return apply(op, cast(input, _BOOL), cast(other, _BOOL))

    return body


for _name, _op in {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}.items():
    published(_name, f"Join the truths of each two elements by `{_op.lower()}`; 0 is false.", _logic(_op))


@function
def logical_not(input: Given) -> FunctionalTensor:
    """Return for each element whether it is false, or 0."""
    return apply("Not", cast(input, _BOOL))


def _bits(of_ints: str, of_bools: str) -> Callable[..., FunctionalTensor]:
    def body(input: Given, other: Given) -> FunctionalTensor:
        a, b = together(input, other)
        return apply(of_bools if _whole(a).dtype is _BOOL else of_ints, a, b)

    return body


def _whole(x: FunctionalTensor) -> FunctionalTensor:
    if category(x.dtype) == 2:
        raise InputError(f"the bits of integers and bools can be joined, and not those of {x.dtype}")
    return x


for _name in ("And", "Or", "Xor"):
    published(
        f"bitwise_{_name.lower()}",
        f"Join the bits of each two integers, or each two bools, by `{_name.lower()}`.",
        _bits(f"Bitwise{_name}", _name),
    )


@function
def bitwise_not(input: Given) -> FunctionalTensor:
    """Return integers with all bits turned, and bools negated."""
    x = _whole(to_tensor(input))
    return apply("Not" if x.dtype is _BOOL else "BitwiseNot", x)


@function
def bitwise_left_shift(input: Given, other: Given) -> FunctionalTensor:
    """Move the bits of each integer up by `other` places."""
    a, b = together(input, other)
    return apply("BitShift", _whole(a), b, direction="LEFT")


@function
def bitwise_right_shift(input: Given, other: Given) -> FunctionalTensor:
    """Move the bits of each integer down by `other` places."""
    a, b = together(input, other)
    return apply("BitShift", _whole(a), b, direction="RIGHT")


second_name("not_equal", ne)


# --- dtypes ---


@function
def type_(input: Given, dtype: DataType | str) -> FunctionalTensor:
    """Return the input in another dtype."""
    return cast(input, DataType.of(dtype))


second_name("to", type_)


@function
def type_as(input: Given, other: FunctionalTensor) -> FunctionalTensor:
    """Return the input in the dtype of another tensor."""
    return cast(input, other.dtype)


def _into(dtype: DataType) -> Callable[..., FunctionalTensor]:
    def body(input: Given) -> FunctionalTensor:
        return cast(input, dtype)

    return body


for _name, _dtype in {
    "bool": _BOOL,
    "double": DataType.FLOAT64,
    "float": _FLOAT,
    "half": DataType.FLOAT16,
    "int": DataType.INT32,
    "long": _INT,
}.items():
    published(_name, f"Return the input in {_dtype}.", _into(_dtype))
