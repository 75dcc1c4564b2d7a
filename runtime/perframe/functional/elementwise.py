"""Functions of each element: arithmetic, exponents and logarithms.

Integers become float32 where a function is defined for floats only, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Literal

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, function, in_floats, number, together
from perframe.functional.promotion import category, promote
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.tensor import DataType

_FLOAT, _INT, _BOOL = DataType.FLOAT32, DataType.INT64, DataType.BOOL


# --- arithmetic ---


def _scaled(value: FunctionalTensor, alpha: float) -> FunctionalTensor:
    return value if alpha == 1 else mul(value, alpha)


@function
def add(input: Given, other: Given, *, alpha: float = 1) -> FunctionalTensor:
    """Return input + alpha * other. Bools are joined by `or`."""
    a, b = together(input, _scaled(to_tensor(other), alpha))
    return apply("Or" if a.dtype is _BOOL else "Add", a, b)


@function
def sub(input: Given, other: Given, *, alpha: float = 1) -> FunctionalTensor:
    """Return input - alpha * other."""
    a, b = together(input, _scaled(to_tensor(other), alpha))
    if a.dtype is _BOOL:
        raise InputError("bools cannot be subtracted: use logical_xor or logical_not")
    return apply("Sub", a, b)


@function
def mul(input: Given, other: Given) -> FunctionalTensor:
    """Return input * other. Bools are joined by `and`."""
    a, b = together(input, other)
    return apply("And" if a.dtype is _BOOL else "Mul", a, b)


@function
def div(input: Given, other: Given, *, rounding_mode: Literal["trunc", "floor"] | None = None) -> FunctionalTensor:
    """Return input / other; integers give float32 without a rounding mode."""
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode not in (None, "trunc"):
        raise InputError(f"rounding_mode is None, 'trunc' or 'floor', not {rounding_mode!r}")
    a, b = together(input, other)
    if rounding_mode is None:
        return apply("Div", in_floats(a), in_floats(b))
    return apply("Div", a, b) if category(a.dtype) < 2 else trunc(apply("Div", a, b))


@function
def floor_divide(input: Given, other: Given) -> FunctionalTensor:
    """Return input / other, rounded down. Integers stay integers."""
    a, b = together(input, other)
    exact = apply("Div", apply("Sub", a, remainder(a, b)), b)
    if category(a.dtype) < 2:
        return exact
    return apply("Where", eq_zero(b), apply("Div", a, b), apply("Round", exact))


@function
def remainder(input: Given, other: Given) -> FunctionalTensor:
    """Return input modulo other, with the sign of `other`, as Python's % does."""
    return apply("Mod", *together(input, other))


@function
def fmod(input: Given, other: Given) -> FunctionalTensor:
    """Return input modulo other, with the sign of `input`, as C's fmod does."""
    return apply("Mod", *together(input, other), fmod=1)


@function
def pow_(input: Given, exponent: Given) -> FunctionalTensor:
    """Return input to the power of exponent."""
    return apply("Pow", *together(input, exponent))


@function
def float_power(input: Given, exponent: Given) -> FunctionalTensor:
    """Return input to the power of exponent, in float32 (PyTorch: float64) unless one of them is float64."""
    a, b = together(input, exponent)
    dtype = promote(a.dtype, _FLOAT)
    return apply("Pow", cast(a, dtype), cast(b, dtype))


@function
def square(input: Given) -> FunctionalTensor:
    """Return x * x of each element; bools give int64."""
    x = to_tensor(input)
    x = cast(x, _INT) if x.dtype is _BOOL else x
    return apply("Mul", x, x)


@function
def positive(input: Given) -> FunctionalTensor:
    """Return the input."""
    return to_tensor(input)


@function
def rsqrt(input: Given) -> FunctionalTensor:
    """Return 1 / sqrt(x) of each element."""
    return apply("Reciprocal", apply("Sqrt", in_floats(input)))


@function
def round_(input: Given, *, decimals: int = 0) -> FunctionalTensor:
    """Round each element to a number of decimals; halves go to the even neighbor."""
    x = to_tensor(input)
    if category(x.dtype) < 2:
        return x
    if not decimals:
        return apply("Round", x)
    scale = number(10.0 ** abs(decimals), x)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return apply(back, apply("Round", apply(there, x, scale)), scale)


@function
def trunc(input: Given) -> FunctionalTensor:
    """Round each element towards zero."""
    x = to_tensor(input)
    if category(x.dtype) < 2:
        return x
    return apply("Where", apply("Less", x, number(0, x)), apply("Ceil", x), apply("Floor", x))


@function
def frac(input: Given) -> FunctionalTensor:
    """Return the part of each element behind the point, with its sign."""
    x = to_tensor(input)
    return apply("Sub", x, trunc(x))


@function
def clamp(input: Given, min: Given | None = None, max: Given | None = None) -> FunctionalTensor:
    """Limit each element to min..max, which are numbers or tensors; None means no limit."""
    if min is None and max is None:
        raise InputError("clamp needs `min`, `max` or both")
    x, *limits = together(input, *(limit for limit in (min, max) if limit is not None))
    if all(limit.ndim == 0 for limit in limits):
        given = iter(limits)
        return apply("Clip", x, *(None if limit is None else next(given) for limit in (min, max)))
    if min is not None:
        x = apply("Max", x, limits[0])
    return x if max is None else apply("Min", x, limits[-1])


@function
def lerp(input: Given, end: Given, weight: Given) -> FunctionalTensor:
    """Return input + weight * (end - input)."""
    a, b, share = together(input, end, weight)
    return apply("Add", a, apply("Mul", share, apply("Sub", b, a)))


@function
def abs_(input: Given) -> FunctionalTensor:
    """Return the absolute value of each element."""
    return apply("Abs", to_tensor(input))


@function
def neg(input: Given) -> FunctionalTensor:
    """Return each element with the other sign."""
    return apply("Neg", to_tensor(input))


@function
def sign(input: Given) -> FunctionalTensor:
    """Return -1, 0 or 1: the sign of each element."""
    return apply("Sign", to_tensor(input))


@function
def ceil(input: Given) -> FunctionalTensor:
    """Round each element up."""
    x = to_tensor(input)
    return x if category(x.dtype) < 2 else apply("Ceil", x)


@function
def floor(input: Given) -> FunctionalTensor:
    """Round each element down."""
    x = to_tensor(input)
    return x if category(x.dtype) < 2 else apply("Floor", x)


@function
def maximum(input: Given, other: Given) -> FunctionalTensor:
    """Return the larger one of each two elements."""
    return apply("Max", *together(input, other))


@function
def minimum(input: Given, other: Given) -> FunctionalTensor:
    """Return the smaller one of each two elements."""
    return apply("Min", *together(input, other))


@function
def reciprocal(input: Given) -> FunctionalTensor:
    """Return 1 / x of each element."""
    return apply("Reciprocal", in_floats(input))


@function
def sqrt(input: Given) -> FunctionalTensor:
    """Return the square root of each element."""
    return apply("Sqrt", in_floats(input))


# --- exponents and logarithms ---


@function
def exp(input: Given) -> FunctionalTensor:
    """Return e to the power of each element."""
    return apply("Exp", in_floats(input))


@function
def log(input: Given) -> FunctionalTensor:
    """Return the natural logarithm of each element."""
    return apply("Log", in_floats(input))


@function
def erf(input: Given) -> FunctionalTensor:
    """Return the error function of each element."""
    return apply("Erf", in_floats(input))


@function
def sigmoid(input: Given) -> FunctionalTensor:
    """Return 1 / (1 + exp(-x)) of each element."""
    return apply("Sigmoid", in_floats(input))


@function
def exp2(input: Given) -> FunctionalTensor:
    """Return 2 to the power of each element."""
    x = in_floats(input)
    return apply("Pow", number(2, x), x)


@function
def expm1(input: Given) -> FunctionalTensor:
    """Return exp(x) - 1 of each element, exact for small x too."""
    x = in_floats(input)
    return apply("Mul", apply("Tanh", mul(x, 0.5)), add(apply("Exp", x), 1))


@function
def log2(input: Given) -> FunctionalTensor:
    """Return the logarithm of each element to base 2."""
    return mul(apply("Log", in_floats(input)), 1 / math.log(2))


@function
def log10(input: Given) -> FunctionalTensor:
    """Return the logarithm of each element to base 10."""
    return mul(apply("Log", in_floats(input)), 1 / math.log(10))


@function
def log1p(input: Given) -> FunctionalTensor:
    """Return log(1 + x) of each element, exact for small x too (Kahan's correction of the rounding of 1 + x)."""
    x = in_floats(input)
    sum_ = add(x, 1)
    lost = sub(sum_, 1)
    small = apply("Mul", apply("Log", sum_), apply("Div", x, lost))
    far = apply("Equal", sum_, number(math.inf, x))
    return apply("Where", far, x, apply("Where", eq_zero(lost), x, small))


@function
def logaddexp(input: Given, other: Given) -> FunctionalTensor:
    """Return log(exp(input) + exp(other)) without overflow."""
    a, b = map(in_floats, together(input, other))
    gap = apply("Softplus", apply("Neg", apply("Abs", apply("Sub", a, b))))
    far = apply("Where", apply("Equal", a, b), number(math.log(2), a), gap)
    return apply("Add", apply("Max", a, b), far)


def eq_zero(x: FunctionalTensor) -> FunctionalTensor:
    """Return where a tensor is zero."""
    return apply("Equal", x, number(0, x))


absolute = abs_
clip = clamp
divide = div
fix = trunc
multiply = mul
negative = neg
subtract = sub
true_divide = div
