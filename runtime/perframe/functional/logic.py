"""Functions of each element: comparison, logic, bits, and conversion between dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, function, number, together
from perframe.functional.promotion import category
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.tensor import DataType

_FLOAT, _INT, _BOOL = DataType.FLOAT32, DataType.INT64, DataType.BOOL


@function
def eq(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` equals `other`."""
    return apply("Equal", *together(input, other))


@function
def gt(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is greater than `other`."""
    return apply("Greater", *together(input, other))


@function
def ge(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is greater than `other`, or equal."""
    return apply("GreaterOrEqual", *together(input, other))


@function
def lt(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is less than `other`."""
    return apply("Less", *together(input, other))


@function
def le(input: Given, other: Given) -> FunctionalTensor:
    """Return for each element whether `input` is less than `other`, or equal."""
    return apply("LessOrEqual", *together(input, other))


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


@function
def logical_and(input: Given, other: Given) -> FunctionalTensor:
    """Join the truths of each two elements by `and`; 0 is false."""
    return apply("And", cast(input, _BOOL), cast(other, _BOOL))


@function
def logical_or(input: Given, other: Given) -> FunctionalTensor:
    """Join the truths of each two elements by `or`; 0 is false."""
    return apply("Or", cast(input, _BOOL), cast(other, _BOOL))


@function
def logical_xor(input: Given, other: Given) -> FunctionalTensor:
    """Join the truths of each two elements by `xor`; 0 is false."""
    return apply("Xor", cast(input, _BOOL), cast(other, _BOOL))


@function
def logical_not(input: Given) -> FunctionalTensor:
    """Return for each element whether it is false, or 0."""
    return apply("Not", cast(input, _BOOL))


def _bits(of_ints: str, of_bools: str, input: Given, other: Given) -> FunctionalTensor:
    a, b = together(input, other)
    return apply(of_bools if _whole(a).dtype is _BOOL else of_ints, a, b)


def _whole(x: FunctionalTensor) -> FunctionalTensor:
    if category(x.dtype) == 2:
        raise InputError(f"the bits of integers and bools can be joined, and not those of {x.dtype}")
    return x


@function
def bitwise_and(input: Given, other: Given) -> FunctionalTensor:
    """Join the bits of each two integers, or each two bools, by `and`."""
    return _bits("BitwiseAnd", "And", input, other)


@function
def bitwise_or(input: Given, other: Given) -> FunctionalTensor:
    """Join the bits of each two integers, or each two bools, by `or`."""
    return _bits("BitwiseOr", "Or", input, other)


@function
def bitwise_xor(input: Given, other: Given) -> FunctionalTensor:
    """Join the bits of each two integers, or each two bools, by `xor`."""
    return _bits("BitwiseXor", "Xor", input, other)


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


equals = eq
greater = gt
greater_equal = ge
less = lt
less_equal = le
not_equal = ne


# --- dtypes ---


@function
def type_(input: Given, dtype: DataType | str) -> FunctionalTensor:
    """Return the input in another dtype."""
    return cast(input, DataType.of(dtype))


to = type_


@function
def type_as(input: Given, other: FunctionalTensor) -> FunctionalTensor:
    """Return the input in the dtype of another tensor."""
    return cast(input, other.dtype)


@function
def bool_(input: Given) -> FunctionalTensor:
    """Return the input in bool."""
    return cast(input, _BOOL)


@function
def double(input: Given) -> FunctionalTensor:
    """Return the input in float64."""
    return cast(input, DataType.FLOAT64)


@function
def float_(input: Given) -> FunctionalTensor:
    """Return the input in float32."""
    return cast(input, _FLOAT)


@function
def half(input: Given) -> FunctionalTensor:
    """Return the input in float16."""
    return cast(input, DataType.FLOAT16)


@function
def int_(input: Given) -> FunctionalTensor:
    """Return the input in int32."""
    return cast(input, DataType.INT32)


@function
def long(input: Given) -> FunctionalTensor:
    """Return the input in int64."""
    return cast(input, _INT)
