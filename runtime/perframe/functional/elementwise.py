"""Functions of each element: arithmetic, comparison, exponents and logarithms.

Integers become float32 where a function is defined for floats only, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from perframe.errors import InputError
from perframe.functional.calls import FUNCTIONS, apply, cast, function, in_floats, number, second_name, together
from perframe.functional.promotion import category, promote
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.tensor import DataType

_FLOAT, _INT, _BOOL = DataType.FLOAT32, DataType.INT64, DataType.BOOL


def published(name: str, sentence: str, body: Callable[..., FunctionalTensor]) -> Callable[..., FunctionalTensor]:
    """Publish a function that a table row describes."""
    body.__name__ = body.__qualname__ = name
    body.__doc__ = sentence
    return function(body)


def _of_one(op: str, floats: bool, ints_stay: bool) -> Callable[..., FunctionalTensor]:
    def body(input: Given) -> FunctionalTensor:
        x = in_floats(input) if floats else to_tensor(input)
        return x if ints_stay and category(x.dtype) < 2 else apply(op, x)

    return body


# function: layer and docstring. The first table is for floats; the second returns integers as they are; the third
# computes in the dtype that it gets.
_OF_FLOATS = {
    "acos": ("Acos", "Return the inverse cosine of each element, in radians."),
    "acosh": ("Acosh", "Return the inverse hyperbolic cosine of each element."),
    "asin": ("Asin", "Return the inverse sine of each element, in radians."),
    "asinh": ("Asinh", "Return the inverse hyperbolic sine of each element."),
    "atan": ("Atan", "Return the inverse tangent of each element, in radians."),
    "atanh": ("Atanh", "Return the inverse hyperbolic tangent of each element."),
    "cos": ("Cos", "Return the cosine of each element, in radians."),
    "cosh": ("Cosh", "Return the hyperbolic cosine of each element."),
    "erf": ("Erf", "Return the error function of each element."),
    "exp": ("Exp", "Return e to the power of each element."),
    "log": ("Log", "Return the natural logarithm of each element."),
    "reciprocal": ("Reciprocal", "Return 1 / x of each element."),
    "sigmoid": ("Sigmoid", "Return 1 / (1 + exp(-x)) of each element."),
    "sin": ("Sin", "Return the sine of each element, in radians."),
    "sinh": ("Sinh", "Return the hyperbolic sine of each element."),
    "sqrt": ("Sqrt", "Return the square root of each element."),
    "tan": ("Tan", "Return the tangent of each element, in radians."),
    "tanh": ("Tanh", "Return the hyperbolic tangent of each element."),
}
_KEEPING_INTS = {
    "ceil": ("Ceil", "Round each element up."),
    "floor": ("Floor", "Round each element down."),
}
_OF_ANY = {
    "abs": ("Abs", "Return the absolute value of each element."),
    "neg": ("Neg", "Return each element with the other sign."),
    "sign": ("Sign", "Return -1, 0 or 1: the sign of each element."),
}
for _name, (_op, _sentence) in _OF_FLOATS.items():
    published(_name, _sentence, _of_one(_op, True, False))
for _name, (_op, _sentence) in _KEEPING_INTS.items():
    published(_name, _sentence, _of_one(_op, False, True))
for _name, (_op, _sentence) in _OF_ANY.items():
    published(_name, _sentence, _of_one(_op, False, False))


def _of_two(op: str) -> Callable[..., FunctionalTensor]:
    def body(input: Given, other: Given) -> FunctionalTensor:
        return apply(op, *together(input, other))

    return body


_OF_TWO = {
    "eq": ("Equal", "Return for each element whether `input` equals `other`."),
    "gt": ("Greater", "Return for each element whether `input` is greater than `other`."),
    "ge": ("GreaterOrEqual", "Return for each element whether `input` is greater than `other`, or equal."),
    "lt": ("Less", "Return for each element whether `input` is less than `other`."),
    "le": ("LessOrEqual", "Return for each element whether `input` is less than `other`, or equal."),
    "maximum": ("Max", "Return the larger one of each two elements."),
    "minimum": ("Min", "Return the smaller one of each two elements."),
}
for _name, (_op, _sentence) in _OF_TWO.items():
    published(_name, _sentence, _of_two(_op))
for _name, _first in {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "negative": "neg",
    "equals": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
}.items():
    second_name(_name, FUNCTIONS[_first])


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
        raise InputError(f"rounding_mode is None, 'trunc' or 'floor', and not {rounding_mode!r}")
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
    """Round each element to a number of decimals; halves go to the even neighbour."""
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
    """Limit each element to min..max, which are numbers or tensors; None is no limit."""
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
def deg2rad(input: Given) -> FunctionalTensor:
    """Return degrees as radians."""
    return mul(in_floats(input), math.pi / 180)


@function
def rad2deg(input: Given) -> FunctionalTensor:
    """Return radians as degrees."""
    return mul(in_floats(input), 180 / math.pi)


# --- exponents and logarithms ---


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


@function
def atan2(input: Given, other: Given) -> FunctionalTensor:
    """Return the angle of the point (other, input) from -pi to pi, in radians. The sign of a zero does not count."""
    y, x = map(in_floats, together(input, other))
    zero, half = number(0, x), number(math.pi / 2, x)
    angle = apply("Atan", apply("Div", y, x))
    turn = apply("Where", apply("Less", y, zero), number(-math.pi, x), number(math.pi, x))
    turned = apply("Where", apply("Less", x, zero), apply("Add", angle, turn), angle)
    upright = apply("Mul", apply("Sign", y), half)
    return apply("Where", eq_zero(x), upright, turned)


@function
def hypot(input: Given, other: Given) -> FunctionalTensor:
    """Return sqrt(input² + other²)."""
    a, b = map(in_floats, together(input, other))
    return apply("Sqrt", apply("Add", mul(a, a), mul(b, b)))


def eq_zero(x: FunctionalTensor) -> FunctionalTensor:
    """Return where a tensor is zero."""
    return apply("Equal", x, number(0, x))


for _name, _first in {
    "arctan2": "atan2",
    "clip": "clamp",
    "divide": "div",
    "fix": "trunc",
    "multiply": "mul",
    "subtract": "sub",
    "true_divide": "div",
}.items():
    second_name(_name, FUNCTIONS[_first])
