"""Trigonometric and hyperbolic functions of each element, and angles. Integers become float32."""

from __future__ import annotations

import math

from perframe.functional.calls import apply, function, in_floats, number, together
from perframe.functional.elementwise import eq_zero, mul
from perframe.functional.tensor import FunctionalTensor, Given


@function
def acos(input: Given) -> FunctionalTensor:
    """Return the inverse cosine of each element, in radians."""
    return apply("Acos", in_floats(input))


@function
def acosh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic cosine of each element."""
    return apply("Acosh", in_floats(input))


@function
def asin(input: Given) -> FunctionalTensor:
    """Return the inverse sine of each element, in radians."""
    return apply("Asin", in_floats(input))


@function
def asinh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic sine of each element."""
    return apply("Asinh", in_floats(input))


@function
def atan(input: Given) -> FunctionalTensor:
    """Return the inverse tangent of each element, in radians."""
    return apply("Atan", in_floats(input))


@function
def atanh(input: Given) -> FunctionalTensor:
    """Return the inverse hyperbolic tangent of each element."""
    return apply("Atanh", in_floats(input))


@function
def cos(input: Given) -> FunctionalTensor:
    """Return the cosine of each element, in radians."""
    return apply("Cos", in_floats(input))


@function
def cosh(input: Given) -> FunctionalTensor:
    """Return the hyperbolic cosine of each element."""
    return apply("Cosh", in_floats(input))


@function
def sin(input: Given) -> FunctionalTensor:
    """Return the sine of each element, in radians."""
    return apply("Sin", in_floats(input))


@function
def sinh(input: Given) -> FunctionalTensor:
    """Return the hyperbolic sine of each element."""
    return apply("Sinh", in_floats(input))


@function
def tan(input: Given) -> FunctionalTensor:
    """Return the tangent of each element, in radians."""
    return apply("Tan", in_floats(input))


@function
def tanh(input: Given) -> FunctionalTensor:
    """Return the hyperbolic tangent of each element."""
    return apply("Tanh", in_floats(input))


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


@function
def deg2rad(input: Given) -> FunctionalTensor:
    """Return degrees as radians."""
    return mul(in_floats(input), math.pi / 180)


@function
def rad2deg(input: Given) -> FunctionalTensor:
    """Return radians as degrees."""
    return mul(in_floats(input), 180 / math.pi)


arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctanh = atanh
arctan2 = atan2
