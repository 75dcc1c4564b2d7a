"""Models that compute in float64 load as models of float32, and run on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.testing.cases import expected_by_onnxruntime

DOUBLE, FLOAT = TensorProto.DOUBLE, TensorProto.FLOAT


def proto(nodes: list[Any], inputs: dict[str, int], output: int, *constants: Any) -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, kind, ["n", 5]) for name, kind in inputs.items()]
    graph = helper.make_graph(
        nodes, "doubles", ends, [helper.make_tensor_value_info("y", output, ["n", 5])], list(constants)
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


INSIDE = proto(
    [
        helper.make_node("Cast", ["x"], ["a"], to=DOUBLE),
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array(2.0))),
        helper.make_node("Mul", ["a", "two"], ["b"]),
        helper.make_node("Add", ["b", "c"], ["d"]),
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["e"], value=numpy_helper.from_array(np.array([0.25]))),
        helper.make_node("Sub", ["d", "e"], ["f"]),
        helper.make_node("Cast", ["f"], ["y"], to=FLOAT),
    ],
    {"x": FLOAT},
    FLOAT,
    numpy_helper.from_array(np.linspace(-1, 1, 5), "c"),
)
ENDS = proto(
    [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("Add", ["a", "x"], ["y"])], {"x": DOUBLE}, DOUBLE
)


@pytest.mark.parametrize("optimize", [True, False])
def test_what_is_computed_inside_runs_on_every_backend(optimize: bool, backend: str, backend_context: Any) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    model = pf.load(INSIDE, optimize=optimize, narrow_doubles=True)
    made = pf.run(model, {"x": x}, backend=backend, ctx=backend_context, strict=True)["y"]
    np.testing.assert_allclose(made, expected_by_onnxruntime(INSIDE, {"x": x})[0], 1e-6, 1e-6)
    if backend != "cpu":
        with pytest.raises(pf.FallbackError):
            pf.run(pf.load(INSIDE), {"x": x}, backend=backend, ctx=backend_context, strict=True)


def test_inputs_and_outputs_keep_their_types(backend: str, backend_context: Any) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5))
    made = pf.run(pf.load(ENDS, narrow_doubles=True), {"x": x}, backend=backend, ctx=backend_context)["y"]
    assert made.dtype == np.float64
    np.testing.assert_array_equal(made, made.astype(np.float32), "computed in float32")
    np.testing.assert_allclose(made, np.tanh(x) + x, 1e-6)


def test_a_loop_carries_floats() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "x"], ["next"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", DOUBLE, ["n", 5]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", DOUBLE, ["n", 5]),
        ],
    )
    loop = proto(
        [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)],
        {"x": DOUBLE},
        DOUBLE,
        numpy_helper.from_array(np.array(3), "count"),
    )
    x = np.random.default_rng(0).standard_normal((2, 5))
    made = pf.run(pf.load(loop, narrow_doubles=True), {"x": x})["y"]
    np.testing.assert_allclose(made, 4 * x, 1e-6)
    assert (made == made.astype(np.float32)).all() and not (made == 4 * x).all()
