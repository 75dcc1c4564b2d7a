"""Operands that do not fit each other are refused by name, and nothing reads beyond their ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf

MISMATCHES: list[tuple[str, list[list[int]], str]] = [
    ("Conv", [[1, 3, 5, 5], [4, 3, 3, 3], [2]], "bias"),
    ("ConvTranspose", [[1, 3, 5, 5], [4, 2, 3, 3]], "4 channels"),
    ("ConvTranspose", [[1, 4, 5, 5], [4, 2, 3, 3], [1]], "bias"),
    ("ConvTranspose", [[1, 4, 5], [4, 2, 3, 3]], "2 spatial dims"),
    ("BatchNormalization", [[1, 4, 3], [2], [2], [2], [2]], "does not broadcast"),
    ("BatchNormalization", [[1, 4, 3], [1], [1], [1], [1]], "does not broadcast"),
    ("Gemm", [[2, 3], [3, 4], [3]], "does not broadcast"),
    ("Gemm", [[2, 3], [3, 4], [1, 2, 4]], "does not broadcast"),
    ("LayerNormalization", [[2, 4], [3]], "does not broadcast"),
    ("LayerNormalization", [[2, 4], [4], [3]], "does not broadcast"),
    ("RMSNormalization", [[2, 4], [5]], "does not broadcast"),
    ("MatMul", [[2, 3], [4, 5]], "3 columns and 4 rows"),
    ("Resize", [[1, 1, 2, 2]], "scales or sizes"),
]


@pytest.mark.parametrize(("op", "shapes", "says"), MISMATCHES, ids=str)
def test_operands_that_do_not_fit_are_refused(
    op: str, shapes: list[list[int]], says: str, backend: str, backend_context: Any
) -> None:
    names = [f"x{index}" for index in range(len(shapes))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], name="node")],
        "mismatched",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, shapes, strict=True)],
        [onnx.ValueInfoProto(name="y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
    fed = {name: np.ones(shape, np.float32) for name, shape in zip(names, shapes, strict=True)}
    with pytest.raises(pf.InferenceError, match=says):
        pf.run(model, fed, backend=backend, ctx=backend_context)


@pytest.mark.parametrize("op", ["SequenceConstruct", "SequenceInsert"])
def test_a_sequence_holds_one_dtype(op: str) -> None:
    """Else a buffer of one dtype would get values of another between two runs."""
    graph = pf.FunctionalGraph()
    x, y = graph.add_input(pf.DataType.FLOAT32, (3,)), graph.add_input(pf.DataType.UINT16, (3,))
    first = pf.functional.apply("SequenceConstruct", x) if op == "SequenceInsert" else x
    with pytest.raises(pf.InferenceError, match="one dtype, and these have float32, uint16"):
        pf.functional.apply(op, first, y)


@pytest.mark.parametrize("opset", [6, 9, 21])
@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Constant", [], {}),
        ("Sum", [], {}),
        ("Clip", [], {}),
        ("Softmax", [], {}),
        ("Resize", ["x"], {}),
        ("CastLike", ["x"], {}),
        ("Cast", ["x"], {"to": "nothing"}),
        ("Cast", ["x"], {"to": 999}),
        ("LpNormalization", [], {}),
        ("Identity", [], {}),
        ("Add", ["x"], {}),
        ("Concat", [], {"axis": 0}),
        ("Concat", ["x", ""], {"axis": 0}),
        ("Concat", ["", "x"], {"axis": 0}),
        ("Einsum", ["x", ""], {"equation": "ij,ij->i"}),
        ("MatMulInteger", ["x"], {}),
        ("MeanVarianceNormalization", ["x"], {"axes": "no"}),
        ("LayerNormalization", ["x", "x"], {"stash_type": 0}),
    ],
    ids=str,
)
def test_a_node_with_wrong_inputs_or_attributes_is_a_model_error(
    op: str, inputs: list[str], attributes: dict[str, Any], opset: int
) -> None:
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], name="node", **attributes)],
        "lacking",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [onnx.ValueInfoProto(name="y")],
    )
    with pytest.raises(pf.ModelError):
        pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10))
