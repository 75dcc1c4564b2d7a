"""Operators that compute each element by itself: arithmetic, activations, comparisons, conversions."""

from __future__ import annotations

import numpy as np

from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import operator, rows
from perframe.ir import Value
from perframe.tensor import DataType

UNARY = {
    "ABS": "Abs",
    "CEIL": "Ceil",
    "COS": "Cos",
    "ELU": "Elu",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "HARD_SWISH": "HardSwish",
    "LOG": "Log",
    "LOGICAL_NOT": "Not",
    "LOGISTIC": "Sigmoid",
    "NEG": "Neg",
    "RELU": "Relu",
    "ROUND": "Round",
    "SIGN": "Sign",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "TANH": "Tanh",
    "STABLEHLO_ABS": "Abs",
    "STABLEHLO_COSINE": "Cos",
    "STABLEHLO_EXPONENTIAL": "Exp",
    "STABLEHLO_FLOOR": "Floor",
    "STABLEHLO_LOG": "Log",
    "STABLEHLO_LOGISTIC": "Sigmoid",
    "STABLEHLO_NEGATE": "Neg",
    "STABLEHLO_TANH": "Tanh",
}
BINARY = {
    "ADD": "Add",
    "DIV": "Div",
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    "LOGICAL_AND": "And",
    "LOGICAL_OR": "Or",
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "MUL": "Mul",
    "POW": "Pow",
    "PRELU": "PRelu",
    "SUB": "Sub",
    "STABLEHLO_ADD": "Add",
    "STABLEHLO_DIVIDE": "Div",
    "STABLEHLO_MAXIMUM": "Max",
    "STABLEHLO_MINIMUM": "Min",
    "STABLEHLO_MULTIPLY": "Mul",
    "STABLEHLO_POWER": "Pow",
    "STABLEHLO_SUBTRACT": "Sub",
}
LIMITS = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}
COMPARISONS = ("Equal", "NotEqual", "GreaterOrEqual", "Greater", "LessOrEqual", "Less")  # by StableHLO's numbers


def _unary(node: LiteRTNode, layer: str) -> Value:
    return node(layer, node.x(0))


def _binary(node: LiteRTNode, layer: str) -> Value:
    return node(layer, node.x(0), node.x(1))


def _bits(node: LiteRTNode, layer: str) -> Value:
    x = node.x(0)
    return node(layer if x.spec.dtype is DataType.BOOL else f"Bitwise{layer}", x, node.x(1))


def _shift(node: LiteRTNode, direction: str) -> Value:
    return node("BitShift", node.x(0), node.x(1), direction=direction)


rows(UNARY, _unary, __name__)
rows(BINARY, _binary, __name__)
rows({"BITWISE_XOR": "Xor", "STABLEHLO_AND": "And", "STABLEHLO_OR": "Or"}, _bits, __name__)
rows({"RIGHT_SHIFT": "RIGHT", "STABLEHLO_SHIFT_LEFT": "LEFT"}, _shift, __name__)


@operator(*LIMITS)
def _limits(node: LiteRTNode) -> Value:
    return node.clipped(node.x(0), *LIMITS[node.operation.code])


@operator("LEAKY_RELU")
def _leaky_relu(node: LiteRTNode) -> Value:
    return node("LeakyRelu", node.x(0), alpha=float(node.option("Alpha", 0.0)))


@operator("GELU")
def _gelu(node: LiteRTNode) -> Value:
    return node("Gelu", node.x(0), approximate="tanh" if node.option("Approximate") else "none")


@operator("ADD_N")
def _add_n(node: LiteRTNode) -> Value:
    total, *rest = node.all()
    for other in rest:
        total = node("Add", total, other)
    return total


@operator("SQUARE")
def _square(node: LiteRTNode) -> Value:
    return node("Mul", node.x(0), node.x(0))


@operator("SQUARED_DIFFERENCE")
def _squared_difference(node: LiteRTNode) -> Value:
    difference = node("Sub", node.x(0), node.x(1))
    return node("Mul", difference, difference)


@operator("RSQRT", "STABLEHLO_RSQRT")
def _rsqrt(node: LiteRTNode) -> Value:
    return node("Reciprocal", node("Sqrt", node.x(0)))


@operator("STABLEHLO_CBRT")
def _cube_root(node: LiteRTNode) -> Value:
    x = node.x(0)
    root = node("Pow", node("Abs", x), node.number(1 / 3, x))
    return node("Mul", node("Sign", x), root)


@operator("NOT_EQUAL")
def _not_equal(node: LiteRTNode) -> Value:
    return node("Not", node("Equal", node.x(0), node.x(1)))


@operator("STABLEHLO_COMPARE")
def _compare(node: LiteRTNode) -> Value:
    name = COMPARISONS[node.option("ComparisonDirection")]
    return node("Not", _binary(node, "Equal")) if name == "NotEqual" else _binary(node, name)


@operator("FLOOR_DIV")
def _floor_div(node: LiteRTNode) -> Value:
    a, b = node.x(0), node.x(1)
    if a.spec.dtype.is_float:
        return node("Floor", node("Div", a, b))
    return node("Div", node("Sub", a, node("Mod", a, b)), b)


@operator("FLOOR_MOD")
def _floor_mod(node: LiteRTNode) -> Value:
    a, b = node.x(0), node.x(1)
    if not a.spec.dtype.is_float:
        return node("Mod", a, b)
    return node("Sub", a, node("Mul", node("Floor", node("Div", a, b)), b))


@operator("STABLEHLO_REMAINDER")
def _remainder(node: LiteRTNode) -> Value:
    return node("Mod", node.x(0), node.x(1), fmod=1)


@operator("ATAN2")
def _atan2(node: LiteRTNode) -> Value:
    """The quotient of the smaller by the larger number, so that it is at most 1 and never of a zero by a zero."""
    y, x = node.x(0), node.x(1)
    zero, one, half_turn, turn = (node.number(value, x) for value in (0.0, 1.0, np.pi / 2, np.pi))
    flat = node("GreaterOrEqual", node("Abs", x), node("Abs", y))
    below = node("Where", flat, x, y)
    below = node("Where", node("Equal", below, zero), one, below)
    angle = node("Atan", node("Div", node("Where", flat, y, x), below))
    side = node("Where", node("Less", y, zero), node("Neg", turn), turn)
    beyond = node("Where", node("Less", x, zero), side, zero)
    steep = node("Where", node("Less", y, zero), node("Neg", half_turn), half_turn)
    return node("Where", flat, node("Add", angle, beyond), node("Sub", steep, angle))


@operator("SELECT", "SELECT_V2", "STABLEHLO_SELECT")
def _select(node: LiteRTNode) -> Value:
    condition, a, b = node.x(0), node.x(1), node.x(2)
    rank = node.rank(a)
    if node.operation.code == "SELECT" and node.rank(condition) == 1 < rank:  # it chooses rows
        condition = node("Unsqueeze", condition, node.ints(*range(1, rank)))
    return node("Where", condition, a, b)


@operator("STABLEHLO_CLAMP")
def _clamp(node: LiteRTNode) -> Value:
    return node("Min", node("Max", node.x(1), node.x(0)), node.x(2))


@operator("CAST", "STABLEHLO_CONVERT")
def _cast(node: LiteRTNode) -> Value:
    return node.cast(node.raw(0), node.tensors.dtype(node.operation.outputs[0]))


@operator("BITCAST")
def _bitcast(node: LiteRTNode) -> Value:
    return node("BitCast", node.raw(0), to=node.output_dtype())


@operator("DEQUANTIZE", "QUANTIZE", "DENSIFY")
def _unchanged(node: LiteRTNode) -> Value:
    """The numbers stay; the scales of the input and the output say how they are stored."""
    return node.x(0)


@operator("FAKE_QUANT")
def _fake_quant(node: LiteRTNode) -> Value:
    """Round to the numbers that a quantization would keep. The range is moved so that zero is one of them."""
    x, low, high = node.x(0), float(node.option("Min", 0.0)), float(node.option("Max", 0.0))
    levels = 2 ** int(node.option("NumBits", 8)) - 1
    least = 1 if node.option("NarrowRange") else 0
    scale = (high - low) / (levels - least)
    if not scale > 0:
        raise NotImplementedError(f"its range from {low} to {high} is empty")
    zero = min(max(round(least - low / scale), least), levels)
    bottom, top = (least - zero) * scale, (levels - zero) * scale
    steps = node("Div", node("Sub", node.clipped(x, bottom, top), node.number(bottom, x)), node.number(scale, x))
    whole = node("Floor", node("Add", steps, node.number(0.5, x)))
    return node("Add", node("Mul", whole, node.number(scale, x)), node.number(bottom, x))
