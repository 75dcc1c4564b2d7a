"""NaN, infinities, signed zeros and the ends of exponentials: every backend does what NumPy does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends import waiting_for_kernels
from perframe.testing import Case, check
from small import load, node

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e-30], np.float32)
LEFT, RIGHT = (np.ascontiguousarray(side) for side in np.meshgrid(SPECIAL, SPECIAL))
FAR = np.array([-1e4, -200, -104, -88.5, -87, -20, 0, 20, 87, 88.5, 200, 1e4, np.inf, -np.inf, np.nan], np.float32)


def stable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in float64, rounded to float32 in the end."""
    return lambda *x: function(*(value.astype(np.float64) for value in x)).astype(np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def log_softmax(x: Any) -> Any:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


PAIRS: dict[str, Callable[..., Any]] = {
    "Max": np.maximum,
    "Min": np.minimum,
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Add": np.add,
    "Mul": np.multiply,
}
ALONE: dict[str, Callable[..., Any]] = {
    "Relu": lambda x: np.maximum(x, 0),
    "Abs": np.abs,
    "Neg": np.negative,
    "Sign": np.sign,
    "IsNaN": np.isnan,
    "IsInf": np.isinf,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Sqrt": np.sqrt,
    "LeakyRelu": lambda x: np.where(x < 0, np.float32(0.01) * x, x),
    "HardSigmoid": lambda x: np.clip(np.float32(0.2) * x + np.float32(0.5), 0, 1),
    "Tanh": np.tanh,
}
SATURATING: dict[str, Callable[..., Any]] = {
    "Exp": stable(np.exp),
    "Sigmoid": stable(sigmoid),
    "Softplus": stable(softplus),
    "Tanh": stable(np.tanh),
    "Elu": stable(lambda x: np.where(x < 0, np.expm1(x), x)),
    "Atan": stable(np.arctan),
}
CASES = [
    *(Case("of special values", op, [LEFT, RIGHT], reference=want) for op, want in PAIRS.items()),
    *(Case("of special values", op, [SPECIAL], reference=want) for op, want in ALONE.items()),
    *(Case("far out", op, [FAR], reference=want, rtol=1e-4, atol=1e-30) for op, want in SATURATING.items()),
    Case("of special values", "Pow", [LEFT, RIGHT], reference=stable(np.power), rtol=1e-3, atol=1e-30),
    Case("of special values", "Acosh", [SPECIAL], reference=stable(np.arccosh)),
    Case("of negative numbers", "Acosh", [np.float32([-2, -1e5, -1e19, 0.5])], reference=stable(np.arccosh)),
    *(
        Case("of large numbers", op, [np.geomspace(1e4, 3e38, 80).astype(np.float32)], reference=stable(want))
        for op, want in (("Asinh", np.arcsinh), ("Acosh", np.arccosh))
    ),
    Case("of large negative numbers", "Asinh", [np.float32([-1e9, -1e30])], reference=stable(np.arcsinh)),
    Case("of NaN", "Clip", [SPECIAL, np.float32(-2), np.float32(2)], reference=np.clip),
    Case("of one bound", "Clip", [SPECIAL, np.float32(-2)], reference=lambda x, low: np.maximum(x, low)),
    Case("reaches all", "Softmax", [np.array([[100, 100, -np.inf], [-1e4, 0, 88], [1e30, 1, 0]], np.float32)]),
    Case("masked", "LogSoftmax", [np.array([[0, 0, -np.inf], [1e30, 1e30, 1]], np.float32)], reference=log_softmax),
    Case("of NaN", "ReduceMax", [np.array([[1, np.nan, 3], [-np.inf, 2, 1]], np.float32), np.array([1])]),
    Case("of NaN", "ReduceMin", [np.array([[1, np.nan, 3], [np.inf, 2, 1]], np.float32), np.array([1])]),
    Case("overflows to infinity", "ReduceSum", [np.array([[3e38, 3e38], [1, 2]], np.float32), np.array([1])]),
    Case(
        "of infinities",
        "MaxPool",
        [np.array([[[-np.inf, -np.inf, -3, np.inf]]], np.float32)],
        {"kernel_shape": [2], "strides": [2]},
    ),
    Case(
        "of int32 at its ends",
        "Max",
        [np.array([2**31 - 1, -(2**31), 0], np.int32), np.array([-(2**31), 5, 2**31 - 1], np.int32)],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_special_values(case: Case, backend: str, backend_context: Any) -> None:
    with np.errstate(all="ignore"):
        check(case, backend, backend_context)


@pytest.mark.parametrize("op", ["Exp", "Log", "Tanh", "Sigmoid", "Erf", "Sin", "Sqrt", "Reciprocal"])
def test_precision_over_many_magnitudes(op: str, backend: str, backend_context: Any) -> None:
    """Within a few float32 roundings of float64, or GLSL's own promise, from 1e-6 to 80."""
    x = np.geomspace(1e-6, 80, 4001).astype(np.float32)
    x = x if op in ("Log", "Sqrt", "Reciprocal") else np.concatenate([-x, x])
    want = {
        "Exp": np.exp,
        "Log": np.log,
        "Tanh": np.tanh,
        "Sigmoid": sigmoid,
        "Erf": np.vectorize(math.erf),
        "Sin": np.sin,
        "Sqrt": np.sqrt,
        "Reciprocal": np.reciprocal,
    }[op]
    check(Case("", op, [x], reference=stable(want), rtol=2e-6, atol=3e-7), backend, backend_context)


@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_are_exact(fmod: int, backend: str, backend_context: Any) -> None:
    """However many times the divisor goes into a number."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(2000) * 10.0 ** rng.uniform(-20, 20, 2000) for _ in range(2))
    left, right = (np.concatenate([x.astype(np.float32), ends.ravel()]) for x, ends in ((a, LEFT), (b, RIGHT)))
    remainder = np.fmod if fmod else np.mod
    case = Case("exact", "Mod", [left, right], {"fmod": fmod}, reference=remainder, rtol=1e-6, atol=1e-38)
    with np.errstate(all="ignore"):
        check(case, backend, backend_context)


def test_the_cpu_has_all_64_bits() -> None:
    """On a GPU, inputs of int64 become int32."""
    check(Case("at its ends", "Add", [np.array([2**40, -(2**62)]), np.array([2**41, 7])]), "cpu")


ODD = ["Sin", "Tan", "Asin", "Atan", "Sinh", "Asinh", "Tanh", "Atanh", "Erf"]


@pytest.mark.parametrize("op", ODD)
def test_odd_functions_keep_the_sign_of_a_zero(op: str) -> None:
    """On the CPU; drivers of GL lose it."""
    zeros = np.array([0.0, -0.0] * 20, np.float32)
    with waiting_for_kernels(), pf.Worker(load([node(op, "x", "y")], {"x": zeros.shape})) as worker:
        found = worker.schedule(zeros).peek_output().numpy()
    np.testing.assert_array_equal(found, zeros)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(zeros))
