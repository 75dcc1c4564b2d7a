"""Elementwise kinds that become several layers, or layers of another name."""

from __future__ import annotations

import functools
import math

import numpy as np

from perframe.importers.sentis.node import SentisNode
from perframe.importers.sentis.table import adapter
from perframe.ir import Value
from perframe.tensor import DataType

_SMALL = 0.5  # below it, exp(x) - 1 and log(1 + x) lose digits


@adapter("Relu6")
def _relu6(node: SentisNode) -> Value:
    x = node.x("x")
    return node("Clip", x, node.number(0, x), node.number(6, x))


@adapter("HardTanh")
def _hard_tanh(node: SentisNode) -> Value:
    x = node.x("x")
    return node("Clip", x, node.number(node["low"], x), node.number(node["high"], x))


@adapter("Square")
def _square(node: SentisNode) -> Value:
    return node("Mul", node.x("x"), node.x("x"))


@adapter("GeluFast")
def _gelu_fast(node: SentisNode) -> Value:
    return node("Gelu", node.x("x"), approximate="tanh")


@adapter("Log2", "Log10")
def _log(node: SentisNode) -> Value:
    made = node("Log", node.x("x"))
    return node("Mul", made, node.number(1 / math.log(2 if node.kind.name == "Log2" else 10), made))


@adapter("Rsqrt")
def _rsqrt(node: SentisNode) -> Value:
    return node("Reciprocal", node("Sqrt", node.x("x")))


@adapter("Trunc")
def _trunc(node: SentisNode) -> Value:
    return _truncated(node, node.x("x"))


def _truncated(node: SentisNode, x: Value) -> Value:
    return node("Mul", node("Sign", x), node("Floor", node("Abs", x)))


@adapter("Expm1")
def _expm1(node: SentisNode) -> Value:
    """Near 0, 2 t / (1 - t) with t = tanh(x / 2)."""
    x = node.x("x")
    half, one, two = (node.number(number, x) for number in (0.5, 1, 2))
    t = node("Tanh", node("Mul", x, half))
    near = node("Div", node("Mul", two, t), node("Sub", one, t))
    return node("Where", _is_small(node, x), near, node("Sub", node("Exp", x), one))


@adapter("Log1p")
def _log1p(node: SentisNode) -> Value:
    """Near 0, 2 artanh(x / (2 + x))."""
    x = node.x("x")
    one, two = node.number(1, x), node.number(2, x)
    near = node("Mul", two, node("Atanh", node("Div", x, node("Add", x, two))))
    return node("Where", _is_small(node, x), near, node("Log", node("Add", x, one)))


def _is_small(node: SentisNode, x: Value) -> Value:
    return node("Less", node("Abs", x), node.number(_SMALL, x))


@adapter("CastLike")
def _cast_like(node: SentisNode) -> Value:
    return node("Cast", node.x("x"), to=node.x("like").spec.dtype)


@adapter("ScalarMad")
def _scalar_mad(node: SentisNode) -> Value:
    prefix = "" if node["dtype"].is_float else "int_"
    x, scale, shift = node.x("x"), node[f"{prefix}scale"], node[f"{prefix}shift"]
    made = x if scale == 1 else node("Mul", x, node.number(scale, x))
    return made if shift == 0 else node("Add", made, node.number(shift, x))


@adapter("Min", "Max")
def _least(node: SentisNode) -> Value:
    return _joined(node, node.kind.name)


@adapter("Sum")
def _sum(node: SentisNode) -> Value:
    return _joined(node, "Add")


@adapter("Mean")
def _mean(node: SentisNode) -> Value:
    made = _joined(node, "Add")
    count = len(node.operation.inputs)
    return made if count == 1 else node("Mul", made, node.number(1 / count, made))


def _joined(node: SentisNode, op: str) -> Value:
    """Apply an operator of two inputs from left to right: version 1 has these kinds with any number of inputs."""
    return functools.reduce(lambda one, other: node(op, one, other), node.all())


@adapter("NotEqual")
def _not_equal(node: SentisNode) -> Value:
    return node("Not", node("Equal", node.x("a"), node.x("b")))


@adapter("FloorDiv")
def _floor_div(node: SentisNode) -> Value:
    a, b = node.x("a"), node.x("b")
    if a.spec.dtype.is_float:
        return node("Floor", node("Div", a, b))
    return node("Div", node("Sub", a, node("Mod", a, b, fmod=0)), b)


@adapter("TruncDiv")
def _trunc_div(node: SentisNode) -> Value:
    made = node("Div", node.x("a"), node.x("b"))
    return _truncated(node, made) if made.spec.dtype.is_float else made


@adapter("Atan2")
def _atan2(node: SentisNode) -> Value:
    """The arctangent of y / x, moved by pi into the quadrants of negative x. Signs of zeros count, as in NumPy."""
    y, x = node.x("a"), node.x("b")
    both = node("And", node("IsInf", y), node("IsInf", x))  # their quotient would be NaN
    y, x = (node("Where", both, node("Sign", value), value) for value in (y, x))
    zero = node.number(0, x)
    origin = node("And", node("Equal", y, zero), node("Equal", x, zero))
    angle = node("Atan", node("Where", origin, y, node("Div", y, x)))
    turn = node("Where", _is_negative(node, y), node.number(-math.pi, x), node.number(math.pi, x))
    return node("Where", _is_negative(node, x), node("Add", angle, turn), angle)


def _is_negative(node: SentisNode, value: Value) -> Value:
    """Whether a number is negative, or the negative zero."""
    zero = node.number(0, value)
    return node("Or", node("Less", value, zero), node("Less", node("Reciprocal", value), zero))


@adapter("DequantizeUint8")
def _dequantize(node: SentisNode) -> Value:
    x, zero = node.x("x"), node["zero_point"]
    if x.spec.dtype is not DataType.UINT8 or not 0 <= zero <= 255:
        raise ValueError(f"its input is {x.spec.dtype}, and its zero point {zero}")
    return node("DequantizeLinear", x, node.constant(node["scale"], np.float32), node.constant(zero, np.uint8))


@adapter("Bernoulli")
def _bernoulli(node: SentisNode) -> Value:
    return node("Bernoulli", node.x("x"), dtype=node["dtype"], **node.seed())


@adapter("Multinomial")
def _multinomial(node: SentisNode) -> Value:
    return node("Multinomial", node.x("x"), sample_size=node["sample_size"], dtype=DataType.INT32, **node.seed())


@adapter("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def _random(node: SentisNode) -> Value:
    attributes = {name: value for name, value in node.attributes().items() if name not in ("has_seed", "seed")}
    return node(node.kind.name, *(node.x(one.name) for one in node.kind.inputs), **attributes, **node.seed())
