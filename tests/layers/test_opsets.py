"""Operators as older opsets wrote them, and those that become other layers when a model is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(41)
PICTURE = (2, 3, 5, 7)
STATISTICS = [draw(3, low=0.5, high=2), draw(3), draw(3), draw(3, low=0.5, high=2)]


def normalized(x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    scale, bias, mean, variance = (v.reshape(-1, 1, 1) for v in (scale, bias, mean, variance))
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * scale + bias


def at_axis(function: Any, axis: int) -> Any:
    """The second operand aligned at an axis of the first, as before opset 7."""
    return lambda a, b: function(a, b.reshape(*b.shape, *(1,) * (a.ndim - axis - b.ndim)))


def softmax(x: Any, axis: int) -> Any:
    """Over all axes from one on, as before opset 13."""
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
    e = np.exp(flat - flat.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).reshape(x.shape)


CASES = [
    Case(
        "6",
        "Clip",
        [draw(3, 5, low=-3, high=3)],
        {"min": -1.0, "max": 0.5},
        opset=6,
        reference=lambda x: x.clip(-1, 0.5),
    ),
    Case(
        "6 infinities",
        "Clip",
        [np.array([-np.inf, -1, np.nan, 2, np.inf], np.float32)],
        opset=6,
        reference=lambda x: x.clip(-np.finfo(np.float32).max, np.finfo(np.float32).max),
    ),
    Case("6 min only", "Clip", [draw(3, 5, low=-3, high=3)], {"min": -1.0}, opset=6, reference=lambda x: x.clip(-1)),
    Case(
        "6 max only", "Clip", [draw(3, 5, low=-3, high=3)], {"max": 0.5}, opset=6, reference=lambda x: x.clip(None, 0.5)
    ),
    Case("11 max only", "Clip", [draw(3, 5, low=-3, high=3), None, np.float32(0.5)], opset=11),
    Case("24 no bounds", "Clip", [draw(3, 5, low=-3, high=3)]),
    *(
        Case(
            f"{opset} axis {axis}",
            "Softmax",
            [draw(2, 3, 5)],
            {"axis": axis},
            opset=opset,
            reference=lambda x, a=axis: softmax(x, a),
            rtol=1e-4,
        )
        for opset in (1, 11)
        for axis in (0, 1, 2)
    ),
    Case(
        "11 axis -1", "Softmax", [draw(2, 3, 5)], {"axis": -1}, opset=11, reference=lambda x: softmax(x, 2), rtol=1e-4
    ),
    Case("11 default axis", "Softmax", [draw(2, 3, 5)], opset=11, reference=lambda x: softmax(x, 1), rtol=1e-4),
    Case(
        "11", "LogSoftmax", [draw(2, 3, 5)], {"axis": 1}, opset=11, reference=lambda x: np.log(softmax(x, 1)), rtol=1e-4
    ),
    Case("1", "Squeeze", [draw(1, 3, 1)], {"axes": [0, 2]}, opset=1),
    Case("11 negative axes", "Squeeze", [draw(1, 3, 1)], {"axes": [-1]}, opset=11),
    Case("1", "Unsqueeze", [draw(3, 5)], {"axes": [0, 3]}, opset=1),
    Case("11 negative axes", "Unsqueeze", [draw(3, 5)], {"axes": [-1]}, opset=11),
    Case("1", "Slice", [draw(5, 7)], {"starts": [1, -3], "ends": [4, 1000]}, opset=1),
    Case("9 axes", "Slice", [draw(5, 7)], {"starts": [2], "ends": [-1], "axes": [1]}, opset=9),
    Case(
        "1",
        "Pad",
        [draw(3, 5)],
        {"paddings": [0, 1, 2, 0], "value": 1.5},
        opset=1,
        reference=lambda x: np.pad(x, [(0, 2), (1, 0)], constant_values=1.5),
    ),
    Case("2", "Pad", [draw(3, 5)], {"pads": [0, 1, 2, 0], "value": 1.5}, opset=2),
    Case("2 reflect", "Pad", [draw(3, 5)], {"pads": [0, 1, 2, 0], "mode": "reflect"}, opset=2),
    Case("2 sizes", "Split", [draw(5, 3)], {"axis": 0, "split": [1, 4]}, outputs=2, opset=2),
    Case("11 equal", "Split", [draw(4, 6)], {"axis": 1}, outputs=3, opset=11),
    Case("13 equal", "Split", [draw(4, 6)], {"axis": -1}, outputs=2, opset=13),
    Case("1", "Reshape", [draw(2, 6)], {"shape": [3, -1]}, opset=1, reference=lambda x: x.reshape(3, -1)),
    *(
        Case(
            f"6 axis {axis} of {shape}",
            op,
            [draw(*PICTURE, low=0.5), draw(*shape, low=0.5)],
            {"axis": axis, "broadcast": 1},
            opset=6,
            reference=at_axis(function, axis),
        )
        for op, function in (
            ("Add", np.add),
            ("Mul", np.multiply),
            ("Div", np.divide),
            ("Sub", np.subtract),
            ("Pow", np.power),
        )
        for axis, shape in ((1, (3,)), (0, (2, 3)), (2, (5, 7)), (3, (7,)))
    ),
    Case("6 at the end", "Add", [draw(*PICTURE), draw(7)], {"broadcast": 1}, opset=6, reference=np.add),
    Case("6 same shape", "Add", [draw(3, 5), draw(3, 5)], opset=6, reference=np.add),
    Case("1 ignored hint", "Add", [draw(3, 5), draw(3, 5)], {"consumed_inputs": [0, 0]}, opset=1, reference=np.add),
    Case("1 ignored hint", "Relu", [draw(3, 5)], {"consumed_inputs": [0]}, opset=1, reference=lambda x: x.clip(0)),
    Case(
        "6 axis",
        "Greater",
        [draw(2, 3), draw(2)],
        {"axis": 0, "broadcast": 1},
        opset=6,
        reference=at_axis(np.greater, 0),
    ),
    Case(
        "6 channels",
        "PRelu",
        [draw(*PICTURE), draw(3)],
        opset=6,
        reference=lambda x, s: np.where(x < 0, x * s.reshape(3, 1, 1), x),
    ),
    Case("6", "Dropout", [draw(3, 5)], {"is_test": 1, "ratio": 0.3}, opset=6, reference=lambda x: x),
    Case("7", "Dropout", [draw(3, 5)], {"ratio": 0.3}, opset=7, reference=lambda x: x),
    Case("12", "Dropout", [draw(3, 5), np.float32(0.3)], opset=12, reference=lambda x, _: x),
    Case("7", "BatchNormalization", [draw(*PICTURE), *STATISTICS], {"momentum": 0.9}, opset=7, reference=normalized),
    Case(
        "6",
        "BatchNormalization",
        [draw(*PICTURE), *STATISTICS],
        {"is_test": 1, "spatial": 1},
        opset=6,
        reference=normalized,
    ),
    Case("9", "BatchNormalization", [draw(*PICTURE), *STATISTICS], opset=9, reference=normalized),
    Case("1", "Cast", [draw(3, 5, high=9)], {"to": "INT32"}, opset=1, reference=lambda x: x.astype(np.int32)),
    Case(
        "6", "Gemm", [draw(3, 5), draw(5, 7), draw(7)], {"broadcast": 1}, opset=6, reference=lambda a, b, c: a @ b + c
    ),
    Case("11", "ReduceSum", [draw(3, 5)], {"axes": [1], "keepdims": 0}, opset=11),
    Case("13", "ReduceMean", [draw(3, 5)], {"axes": [-1]}, opset=13),
    Case("1 all", "ReduceMax", [draw(3, 5)], {"keepdims": 0}, opset=1),
    Case(
        "8",
        "MaxPool",
        [draw(1, 2, 5, 5)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        opset=8,
        reference="onnxruntime",
    ),
    Case(
        "7",
        "AveragePool",
        [draw(1, 2, 5, 5)],
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        opset=7,
        reference="onnxruntime",
    ),
    Case("1", "Concat", [draw(2, 3), draw(2, 1)], {"axis": 1}, opset=4),
    *(
        Case(f"{opset} of {count}", op, [draw(3, 5), *(draw(5) for _ in range(count - 1))], opset=opset)
        for op in ("Sum", "Max", "Min", "Mean")
        for opset in (8, 13)
        for count in (1, 2, 4)
    ),
    *(
        Case(f"to {np.dtype(dtype)}", "CastLike", [draw(3, 5, low=-9, high=9), np.zeros(2, dtype)])
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64, np.int8, bool)
    ),
    Case("of integers", "Pow", [np.array([2, 3, -2, 0], np.int32), np.array([3, 0, 3, 2], np.int32)]),
    Case("float by int64", "Pow", [draw(4, low=0.5, high=2), np.array([3, 0, -2, 1])]),
    Case("int64 by float", "Pow", [np.array([2, 3, 9, 4]), np.array([3, 0, 0.5, 0.5], np.float32)]),
    Case("from int64", "CastLike", [draw(3, 5, high=9, dtype=np.int64), np.zeros((2, 2), np.float32)]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_opsets(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
