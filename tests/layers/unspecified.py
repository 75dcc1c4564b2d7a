"""What the ONNX standard leaves open about operators, and what every backend of perframe does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto

NAN, INF = np.nan, np.inf
LOW32 = -(2**31)


@dataclass(frozen=True)
class Open:
    """One open question, its answer, and layers that show it: (operator, inputs, attributes, outputs)."""

    operators: str
    question: str
    answer: str
    examples: Sequence[tuple[str, Sequence[Any], dict[str, Any], Sequence[Any]]] = field(default=())


def f(*numbers: float) -> Any:
    """A row of float32 numbers."""
    return np.array(numbers, np.float32)


def one(number: float, dtype: Any = np.float32) -> Any:
    """A number without dims."""
    return np.array(number, dtype)


def i32(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


def i64(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def i8(*numbers: int) -> Any:
    return np.array(numbers, np.int8)


def u8(*numbers: int) -> Any:
    return np.array(numbers, np.uint8)


def _cast(to: int, given: Any, made: Any) -> tuple[str, Sequence[Any], dict[str, Any], Sequence[Any]]:
    return "Cast", [given], {"to": to}, [made]


FAR = f(NAN, INF, -INF, 300, -300, 3e9, 1e20, 1.9, -1.9, -0.0)
EMPTY = np.zeros((2, 0), np.float32)
ROW = np.array([[2, NAN, 1, 4], [NAN, 0, NAN, 2], [1, 2, 3, NAN]], np.float32)

OPEN = [
    Open(
        "Pow",
        "integers with a negative exponent",
        "The real power, truncated: 0, 1 or -1; for base 0, 0.",
        [
            (
                "Pow",
                [i32(2, 3, 1, -1, -1, 0, 0, -2), i32(-1, -2, -5, -3, -2, -1, 0, -1)],
                {},
                [i32(0, 0, 1, -1, 1, 0, 1, 0)],
            ),
            ("Pow", [i64(2, -1, 0), i64(-1, -3, -2)], {}, [i64(0, -1, 0)]),
        ],
    ),
    Open(
        "Div, Mod",
        "integers divided by 0",
        "0.",
        [
            ("Div", [i32(7, -7, 0), i32(0, 0, 0)], {}, [i32(0, 0, 0)]),
            ("Div", [i64(7, -7, 0), i64(0, 0, 0)], {}, [i64(0, 0, 0)]),
            ("Div", [u8(7, 0), u8(0, 0)], {}, [u8(0, 0)]),
            ("Mod", [i32(7, -7, 0), i32(0, 0, 0)], {}, [i32(0, 0, 0)]),
            ("Mod", [i64(7, -7, 0), i64(0, 0, 0)], {"fmod": 1}, [i64(0, 0, 0)]),
        ],
    ),
    Open(
        "Mod",
        "sign of the remainder",
        "The divisor's; with `fmod` the dividend's. A float divided by 0, or an infinite dividend, gives NaN.",
        [
            ("Mod", [i32(7, -7, 7, -7), i32(3, 3, -3, -3)], {}, [i32(1, 2, -2, -1)]),
            ("Mod", [i8(-7, 7, -128), i8(3, -3, -1)], {}, [i8(2, -2, 0)]),
            ("Mod", [i32(7, -7, 7), i32(3, 3, -3)], {"fmod": 1}, [i32(1, -1, 1)]),
            ("Mod", [f(-7, 0, INF, 5), f(0, 0, 3, INF)], {"fmod": 1}, [f(NAN, NAN, NAN, 5)]),
        ],
    ),
    Open(
        "Add, Sub, Mul, Neg, Abs, ReduceSum, CumSum",
        "integer overflow",
        "Wraps around (two's complement). Layers whose int64 values may not fit 32 bits run on the CPU.",
        [
            ("Add", [i32(2**31 - 1, LOW32), i32(1, -1)], {}, [i32(LOW32, 2**31 - 1)]),
            ("Add", [u8(255, 0), u8(1, 0)], {}, [u8(0, 0)]),
            ("Sub", [u8(0, 3), u8(1, 5)], {}, [u8(255, 254)]),
            ("Mul", [i32(65536, 46341), i32(65536, 46341)], {}, [i32(0, -2147479015)]),
            ("Mul", [i8(100, -100), i8(3, 3)], {}, [i8(44, -44)]),
            ("Neg", [i32(LOW32)], {}, [i32(LOW32)]),
            ("Abs", [i32(LOW32)], {}, [i32(LOW32)]),
            ("Div", [i32(LOW32), i32(-1)], {}, [i32(LOW32)]),
            ("ReduceSum", [i32(2**31 - 1, 1)], {"keepdims": 0}, [one(LOW32, np.int32)]),
            ("Neg", [i64(-(2**63))], {}, [i64(-(2**63))]),
            ("Mul", [i64(100000, 2**62), i64(100000, 4)], {}, [i64(10**10, 0)]),
            ("ReduceSum", [i64(2**31 - 1, 1)], {"keepdims": 0}, [one(2**31, np.int64)]),
            ("CumSum", [i32(2**31 - 1, 1), one(0, np.int64)], {}, [i32(2**31 - 1, LOW32)]),
        ],
    ),
    Open(
        "BitShift",
        "a shift by at least the type's width",
        "0.",
        [
            ("BitShift", [u8(1, 255, 3), u8(7, 8, 40)], {"direction": "LEFT"}, [u8(128, 0, 0)]),
            ("BitShift", [u8(128, 255, 3), u8(7, 8, 40)], {"direction": "RIGHT"}, [u8(1, 0, 0)]),
        ],
    ),
    Open(
        "Cast",
        "floats outside an integer type of at most 32 bits",
        "As on x86: int32 gets -2³¹, also for NaN and infinities; narrower types get its lowest bits. Fractions "
        "are truncated. Every number but 0 is true, also NaN.",
        [
            _cast(TensorProto.INT32, FAR, i32(LOW32, LOW32, LOW32, 300, -300, LOW32, LOW32, 1, -1, 0)),
            _cast(TensorProto.INT16, FAR, np.int16([0, 0, 0, 300, -300, 0, 0, 1, -1, 0])),
            _cast(TensorProto.INT8, FAR, i8(0, 0, 0, 44, -44, 0, 0, 1, -1, 0)),
            _cast(TensorProto.UINT8, FAR, u8(0, 0, 0, 44, 212, 0, 0, 1, 255, 0)),
            _cast(TensorProto.BOOL, f(NAN, INF, -0.0, 1e-30, 0), np.array([True, True, False, True, False])),
            _cast(TensorProto.INT8, i32(300, -300, 127, 128), i8(44, -44, 127, -128)),
            _cast(TensorProto.UINT8, i32(300, -1), u8(44, 255)),
        ],
    ),
    Open(
        "Cast",
        "floats outside int64",
        "-2⁶³.",
        [_cast(TensorProto.INT64, f(NAN, 3e9, 1e20, -1.9), i64(-(2**63), 3 * 10**9, -(2**63), -1))],
    ),
    Open(
        "Cast",
        "numbers outside float16",
        "Infinity; 0 for the smallest.",
        [
            _cast(
                TensorProto.FLOAT16, f(1e6, -1e6, NAN, 1e-9, 65520, 65519), np.float16([INF, -INF, NAN, 0, INF, 65504])
            )
        ],
    ),
    Open(
        "Max, Min, Relu, Clip, ReduceMax, ReduceMin, MaxPool",
        "NaN",
        "Propagates from every operand, also from bounds of Clip.",
        [
            ("Max", [f(NAN, 1, INF), f(1, NAN, NAN)], {}, [f(NAN, NAN, NAN)]),
            ("Min", [f(NAN, 1, INF), f(1, NAN, NAN)], {}, [f(NAN, NAN, NAN)]),
            ("Relu", [f(NAN, -1)], {}, [f(NAN, 0)]),
            ("Clip", [f(NAN, 5, -5), one(-1), one(1)], {}, [f(NAN, 1, -1)]),
            ("ReduceMax", [f(1, NAN, 3)], {"keepdims": 0}, [one(NAN)]),
            ("ReduceMin", [f(1, NAN, 3)], {"keepdims": 0}, [one(NAN)]),
            (
                "MaxPool",
                [f(1, NAN, 3, 4).reshape(1, 1, 4)],
                {"kernel_shape": [2], "strides": [2]},
                [f(NAN, 4).reshape(1, 1, 2)],
            ),
        ],
    ),
    Open(
        "Clip",
        "a minimum above the maximum",
        "The maximum, for all elements.",
        [
            ("Clip", [f(-5, 0, 5), one(2), one(-2)], {}, [f(-2, -2, -2)]),
            ("Clip", [i32(-5, 0, 5), one(2, np.int32), one(-2, np.int32)], {}, [i32(-2, -2, -2)]),
        ],
    ),
    Open(
        "Sign, Round, Sqrt, Floor",
        "NaN, and the sign of zeros",
        "NaN stays NaN. Sign maps -0 to 0; the others keep the sign: -0.3 rounds to -0.",
        [
            ("Sign", [f(NAN, -0.0, -INF)], {}, [f(NAN, 0.0, -1)]),
            ("Round", [f(NAN, -0.3, -0.0, -INF)], {}, [f(NAN, -0.0, -0.0, -INF)]),
            ("Sqrt", [f(-1, -0.0)], {}, [f(NAN, -0.0)]),
            ("Floor", [f(NAN, -0.0, -INF)], {}, [f(NAN, -0.0, -INF)]),
        ],
    ),
    Open(
        "Round, QuantizeLinear",
        "halves",
        "To the even number.",
        [
            ("Round", [f(0.5, 1.5, 2.5, -0.5, -1.5)], {}, [f(0, 2, 2, -0.0, -2)]),
            ("QuantizeLinear", [f(0.5, 1.5, 2.5, -0.5, -1.5), one(1), one(10, np.uint8)], {}, [u8(10, 12, 12, 10, 8)]),
        ],
    ),
    Open(
        "ArgMax, ArgMin, Hardmax",
        "NaN",
        "The first NaN wins, as in NumPy; the last with `select_last_index`.",
        [
            ("ArgMax", [ROW], {"axis": 1, "keepdims": 0}, [i64(1, 0, 3)]),
            ("ArgMin", [ROW], {"axis": 1, "keepdims": 0}, [i64(1, 0, 3)]),
            ("ArgMax", [f(NAN, 1, NAN, 2)], {"axis": 0, "keepdims": 0, "select_last_index": 1}, [one(2, np.int64)]),
            ("ArgMin", [f(NAN, 1, NAN, 2)], {"axis": 0, "keepdims": 0, "select_last_index": 1}, [one(2, np.int64)]),
            ("Hardmax", [f(1, NAN, NAN).reshape(1, 3)], {}, [f(0, 1, 0).reshape(1, 3)]),
        ],
    ),
    Open(
        "ArgMax, ArgMin, Hardmax, TopK",
        "equal elements",
        "The lower index comes first; 0 and -0 are equal.",
        [
            ("ArgMax", [f(2, 2, 1, 1)], {"axis": 0, "keepdims": 0}, [one(0, np.int64)]),
            ("ArgMin", [f(2, 2, 1, 1)], {"axis": 0, "keepdims": 0}, [one(2, np.int64)]),
            ("Hardmax", [f(1, 1, 0).reshape(1, 3)], {}, [f(1, 0, 0).reshape(1, 3)]),
            ("TopK", [f(1, 2, 2, 1, 2), i64(4)], {}, [f(2, 2, 2, 1), i64(1, 2, 4, 0)]),
            ("TopK", [f(1, 2, 2, 1, 2), i64(4)], {"largest": 0}, [f(1, 1, 2, 2), i64(0, 3, 1, 2)]),
            ("TopK", [f(0.0, -0.0, 0.0, -0.0), i64(4)], {}, [f(0.0, -0.0, 0.0, -0.0), i64(0, 1, 2, 3)]),
        ],
    ),
    Open(
        "TopK",
        "NaN",
        "Larger than infinity.",
        [
            ("TopK", [f(1, NAN, 3, -INF, NAN, INF), i64(4)], {}, [f(NAN, NAN, INF, 3), i64(1, 4, 5, 2)]),
            ("TopK", [f(1, NAN, 3, -INF, NAN, INF), i64(4)], {"largest": 0}, [f(-INF, 1, 3, INF), i64(3, 0, 2, 5)]),
        ],
    ),
    Open(
        "QuantizeLinear",
        "NaN, and numbers outside the type",
        "NaN becomes the smallest value; others the nearest.",
        [
            ("QuantizeLinear", [f(NAN, INF, -INF, 1e10), one(0.5), one(9, np.uint8)], {}, [u8(0, 255, 0, 255)]),
            ("QuantizeLinear", [f(NAN, INF, -INF, 1e10), one(0.5), one(9, np.int8)], {}, [i8(-128, 127, -128, 127)]),
        ],
    ),
    Open(
        "DynamicQuantizeLinear",
        "the scale of zeros",
        "1/255, as in ONNX's reference; onnxruntime has 1.",
        [("DynamicQuantizeLinear", [f(0, 0, 0)], {}, [u8(0, 0, 0), one(1 / 255), one(0, np.uint8)])],
    ),
    Open(
        "Resize",
        "`nearest` halfway between two elements",
        "As `nearest_mode` says: `round_prefer_floor` takes the lower index.",
        [
            (
                "Resize",
                [f(0, 1, 2, 3).reshape(1, 1, 1, 4), None, None, i64(1, 1, 1, 2)],
                {"mode": "nearest"},
                [f(0, 2).reshape(1, 1, 1, 2)],
            ),
            (
                "Resize",
                [f(0, 1, 2, 3).reshape(1, 1, 1, 4), None, None, i64(1, 1, 1, 2)],
                {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
                [f(1, 3).reshape(1, 1, 1, 2)],
            ),
        ],
    ),
    Open(
        "ScatterND, ScatterElements",
        "duplicate indices",
        "Updates apply in order, so the last one stays. With a reduction all count; NaN propagates through max and "
        "min.",
        [
            ("ScatterND", [f(0, 0, 0), i64(1, 1, 1).reshape(3, 1), f(1, 2, 3)], {}, [f(0, 3, 0)]),
            ("ScatterElements", [f(0, 0, 0), i64(1, 1, 1), f(1, 2, 3)], {"axis": 0}, [f(0, 3, 0)]),
            ("ScatterND", [f(0, 0, 0), i64(1, 1, 1).reshape(3, 1), f(1, 2, 3)], {"reduction": "add"}, [f(0, 6, 0)]),
            ("ScatterElements", [f(1, 2, 3), i64(1, 1, 1), f(1, 2, 3)], {"axis": 0, "reduction": "mul"}, [f(1, 12, 3)]),
            (
                "ScatterElements",
                [f(1, 2, 3), i64(1, 1, 0), f(NAN, 2, 1)],
                {"axis": 0, "reduction": "max"},
                [f(1, NAN, 3)],
            ),
        ],
    ),
    Open(
        "OneHot",
        "an index outside the depth",
        "No element is hot. Negative indices count from the end.",
        [
            (
                "OneHot",
                [i64(0, 5, -1, -9), one(3, np.int64), f(0, 1)],
                {},
                [f(1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0).reshape(4, 3)],
            )
        ],
    ),
    Open(
        "Reductions, MatMul, Softmax",
        "no elements",
        "Sums are 0, products 1, maxima -∞ or the type's minimum, minima ∞ or the type's maximum, means NaN. An "
        "empty Softmax is empty.",
        [
            ("ReduceMax", [EMPTY, i64(1)], {"keepdims": 0}, [f(-INF, -INF)]),
            ("ReduceMin", [EMPTY, i64(1)], {"keepdims": 0}, [f(INF, INF)]),
            ("ReduceSum", [EMPTY, i64(1)], {"keepdims": 0}, [f(0, 0)]),
            ("ReduceMean", [EMPTY, i64(1)], {"keepdims": 0}, [f(NAN, NAN)]),
            ("ReduceProd", [EMPTY, i64(1)], {"keepdims": 0}, [f(1, 1)]),
            ("ReduceLogSumExp", [EMPTY, i64(1)], {"keepdims": 0}, [f(-INF, -INF)]),
            ("ReduceMax", [EMPTY.astype(np.int32), i64(1)], {"keepdims": 0}, [i32(LOW32, LOW32)]),
            ("MatMul", [EMPTY, EMPTY.T], {}, [np.zeros((2, 2), np.float32)]),
            ("Softmax", [EMPTY], {"axis": 1}, [EMPTY]),
        ],
    ),
    Open(
        "Softmax",
        "rows with infinities",
        "NaN for a row of only -∞, and for a row with ∞.",
        [
            ("Softmax", [f(-INF, -INF).reshape(1, 2)], {}, [f(NAN, NAN).reshape(1, 2)]),
            ("Softmax", [f(INF, 1).reshape(1, 2)], {}, [f(NAN, NAN).reshape(1, 2)]),
        ],
    ),
    Open(
        "Pow, Log",
        "floats outside their domain",
        "As in C: a root of a negative number is NaN, 0 to a negative power ∞, anything to the power of 0 and 1 to "
        "any power 1.",
        [
            ("Pow", [f(-2, 0, 0, NAN, 1, -2), f(0.5, 0, -1, 0, NAN, 3)], {}, [f(NAN, 1, INF, 1, 1, -8)]),
            ("Log", [f(0, -0.0, -1)], {}, [f(-INF, -INF, NAN)]),
        ],
    ),
    Open(
        "Normalizations",
        "variance 0 and epsilon 0",
        "NaN. LpNormalization gives 0 for zeros.",
        [
            ("LayerNormalization", [f(2, 2).reshape(1, 2), f(1, 1)], {"epsilon": 0.0}, [f(NAN, NAN).reshape(1, 2)]),
            ("LpNormalization", [f(0, 0).reshape(1, 2)], {}, [f(0, 0).reshape(1, 2)]),
        ],
    ),
]
