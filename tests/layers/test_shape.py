"""Shapes and numbers as tensors, and shape arithmetic in a model with dims that are known only when it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.testing import Case, Draw, check, ints
from small import specs

draw = Draw(37)

CASES = [
    Case("", "Shape", [draw(2, 3, 5)]),
    Case("of a scalar", "Shape", [draw()]),
    Case("of nothing", "Shape", [draw(0, 3)]),
    Case("from 1", "Shape", [draw(2, 3, 5)], {"start": 1}),
    Case("to -1", "Shape", [draw(2, 3, 5)], {"end": -1}),
    Case("from -2 to 9", "Shape", [draw(2, 3, 5)], {"start": -2, "end": 9}),
    Case("from 2 to 1", "Shape", [draw(2, 3, 5)], {"start": 2, "end": 1}),
    Case("of int64", "Shape", [draw(2, 3, high=9, dtype=np.int64)]),
    Case("", "Size", [draw(2, 3, 5)]),
    Case("of nothing", "Size", [draw(0, 3)]),
    Case("of a scalar", "Size", [draw()]),
    Case("zeros", "ConstantOfShape", [ints(2, 3)]),
    Case("a scalar", "ConstantOfShape", [ints()]),
    Case("nothing", "ConstantOfShape", [ints(0, 2)]),
    Case("int64", "ConstantOfShape", [ints(3)], {"value": numpy_helper.from_array(np.array([7], np.int64))}),
    Case("bool", "ConstantOfShape", [ints(3)], {"value": numpy_helper.from_array(np.array([True]))}),
    Case("float16", "ConstantOfShape", [ints(3)], {"value": numpy_helper.from_array(np.array([1.5], np.float16))}),
    Case("given at run time", "ConstantOfShape", [ints(2, 3)], constants=()),
    *(
        Case(
            f"{start} {limit} {delta} {np.dtype(dtype)}",
            "Range",
            [np.asarray(v, dtype) for v in (start, limit, delta)],
            constants=at,
        )
        for at in ((0, 1, 2), ())
        for dtype, start, limit, delta in (
            (np.int64, 0, 7, 1),
            (np.int64, 10, 2, -3),
            (np.int64, 3, 3, 1),
            (np.int64, 5, 2, 1),
            (np.int32, -4, 9, 5),
            (np.float32, 0.5, 2.1, 0.25),
        )
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shape(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def flattening() -> pf.Model:
    """(batch, channels, height, width) to (batch, channels * height, width), as exporters write it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["b"]),
        helper.make_node("Gather", ["s", "three"], ["w"]),
        helper.make_node("Unsqueeze", ["b", "axis"], ["b1"]),
        helper.make_node("Unsqueeze", ["w", "axis"], ["w1"]),
        helper.make_node("Concat", ["b1", "rest", "w1"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    constants = {"zero": np.array(0), "three": np.array(3), "axis": ints(0), "rest": ints(-1)}
    graph = helper.make_graph(
        nodes,
        "flattening",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "channels", "height", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", None, "width"])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def test_shape_arithmetic_keeps_named_dims() -> None:
    made = specs(flattening())["y"]
    assert made.shape is not None
    assert (made.shape[0], made.shape[2]) == ("batch", "width")


def test_shape_arithmetic_runs_for_every_shape(backend: str, backend_context: Any) -> None:
    with pf.Worker(flattening(), backend, backend_context, strict=True) as worker:
        for shape in ((1, 2, 3, 4), (2, 3, 1, 7), (1, 1, 1, 1)):
            x = draw(*shape)
            y = worker.schedule(x).peek_output().download_to_array()
            np.testing.assert_array_equal(y, x.reshape(shape[0], -1, shape[3]))
