"""Elementwise layers. A layer is one formula: its shape rule, kernels and tests follow from the formula."""

from __future__ import annotations

from typing import Literal

from perframe.ir.attributes import Flag
from perframe.ir.broadcasting import elementwise
from perframe.ir.vocabulary import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    floor_mod,
    is_inf,
    is_nan,
    log,
    maximum,
    minimum,
    power,
    round_even,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc_div,
    trunc_mod,
    where,
)
from perframe.tensor import DataType

# --- arithmetic ---


@elementwise((-9, 9), dtypes="float int")
def Add(a, b):
    return a + b


@elementwise((-9, 9), dtypes="float int")
def Sub(a, b):
    return a - b


@elementwise((-9, 9), dtypes="float int")
def Mul(a, b):
    return a * b


def _integer_div(a, b):
    return trunc_div(a, b)


@elementwise((-9, 9), (1, 9), dtypes="float int", choose=lambda _a, _p, kind: _integer_div if kind == "int" else None)
def Div(a, b):
    return a / b


def _floored_mod(a, b):
    return floor_mod(a, b)


def _truncated_mod(a, b):
    return trunc_mod(a, b)


@elementwise(
    (-9, 9),
    (1, 9),
    dtypes="int",
    choose=lambda attributes, _p, _k: _truncated_mod if attributes["fmod"] else _floored_mod,
)
def Mod(a, b, *, fmod: Flag = 0):
    return _floored_mod(a, b)


@elementwise((0.1, 4), (-3, 3), dtypes="float int")
def Pow(a, b):
    return power(a, b)


@elementwise((-9, 9), dtypes="float int")
def Max(a, b):
    return maximum(a, b)


@elementwise((-9, 9), dtypes="float int")
def Min(a, b):
    return minimum(a, b)


@elementwise((-9, 9), dtypes="float int")
def Neg(x):
    return -x


@elementwise((-9, 9), dtypes="float int")
def Abs(x):
    return abs(x)


@elementwise((-9, 9), dtypes="float int")
def Sign(x):
    return sign(x)


@elementwise((0.1, 9))
def Reciprocal(x):
    return 1 / x


@elementwise((-9, 9))
def Floor(x):
    return floor(x)


@elementwise((-9, 9))
def Ceil(x):
    return ceil(x)


@elementwise((-9, 9))
def Round(x):
    return round_even(x)


@elementwise((0, 9))
def Sqrt(x):
    return sqrt(x)


@elementwise((-9, 9))
def Exp(x):
    return exp(x)


@elementwise((0.01, 9))
def Log(x):
    return log(x)


@elementwise((-4, 4))
def Erf(x):
    return erf(x)


@elementwise((-9, 9))
def Sin(x):
    return sin(x)


@elementwise((-9, 9))
def Cos(x):
    return cos(x)


@elementwise((-1.4, 1.4))
def Tan(x):
    return tan(x)


@elementwise((-1, 1))
def Asin(x):
    return asin(x)


@elementwise((-1, 1))
def Acos(x):
    return acos(x)


@elementwise((-9, 9))
def Atan(x):
    return atan(x)


@elementwise((-4, 4))
def Sinh(x):
    return sinh(x)


@elementwise((-4, 4))
def Cosh(x):
    return cosh(x)


@elementwise((-9, 9))
def Tanh(x):
    return tanh(x)


@elementwise((-9, 9))
def Asinh(x):
    return asinh(x)


@elementwise((1, 9))
def Acosh(x):
    return acosh(x)


@elementwise((-0.99, 0.99))
def Atanh(x):
    return atanh(x)


# --- comparison and logic ---


@elementwise((-3, 3), result=DataType.BOOL, dtypes="float int", strings=True)
def Equal(a, b):
    return a == b


@elementwise((-3, 3), result=DataType.BOOL, dtypes="float int")
def Greater(a, b):
    return a > b


@elementwise((-3, 3), result=DataType.BOOL, dtypes="float int")
def GreaterOrEqual(a, b):
    return a >= b


@elementwise((-3, 3), result=DataType.BOOL, dtypes="float int")
def Less(a, b):
    return a < b


@elementwise((-3, 3), result=DataType.BOOL, dtypes="float int")
def LessOrEqual(a, b):
    return a <= b


@elementwise((0, 1), dtypes="bool")
def And(a, b):
    return a & b


@elementwise((0, 1), dtypes="bool")
def Or(a, b):
    return a | b


@elementwise((0, 1), dtypes="bool")
def Xor(a, b):
    return a ^ b


@elementwise((0, 1), dtypes="bool")
def Not(x):
    return ~x


@elementwise((0, 1), (-9, 9), result="a", dtypes="where", strings=True)
def Where(condition, a, b):
    return where(condition, a, b)


@elementwise((-9, 9), result=DataType.BOOL)
def IsNaN(x):
    return is_nan(x)


@elementwise((-9, 9), result=DataType.BOOL)
def IsInf(x, *, detect_negative: Flag = 1, detect_positive: Flag = 1):
    return is_inf(x) & (((x > 0) & (detect_positive > 0)) | ((x < 0) & (detect_negative > 0)))


@elementwise((0, 99), dtypes="int")
def BitwiseAnd(a, b):
    return a & b


@elementwise((0, 99), dtypes="int")
def BitwiseOr(a, b):
    return a | b


@elementwise((0, 99), dtypes="int")
def BitwiseXor(a, b):
    return a ^ b


@elementwise((-99, 99), dtypes="int")
def BitwiseNot(x):
    return ~x


def _shift_left(a, b):
    return a << b


def _shift_right(a, b):
    return a >> b


@elementwise(
    (0, 99),
    (0, 5),
    dtypes="int",
    choose=lambda attributes, _p, _k: _shift_right if attributes["direction"] == "RIGHT" else _shift_left,
)
def BitShift(a, b, *, direction: Literal["LEFT", "RIGHT"]):
    return _shift_left(a, b)


# --- conversion and normalization with known statistics ---


@elementwise((-9, 9), result="to", dtypes="float int bool", strings=True)
def Cast(x):
    return x


@elementwise((-4, 4), (0.5, 2), (-1, 1))
def MultiplyAdd(x, scale, shift):
    return x * scale + shift


@elementwise(
    (-4, 4), (0.5, 2), (-1, 1), (-1, 1), (0.5, 2), channelwise=("scale", "bias", "mean", "variance"), result="x"
)
def BatchNormalization(x, scale, bias, mean, variance, *, epsilon=1e-5):
    return (x - mean) / sqrt(variance + epsilon) * scale + bias
