"""What a loop gives that never ran."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf


def info(name: str, kind: int = TensorProto.FLOAT, shape: Any = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def loop(declared: Any) -> onnx.ModelProto:
    """Collects x, as often as n says; its rows are declared to be of this shape."""
    nodes = [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Identity", ["x"], ["row"])]
    given = [info("i", TensorProto.INT64, []), info("going", TensorProto.BOOL, [])]
    body = helper.make_graph(nodes, "body", given, [info("on", TensorProto.BOOL, []), info("row", shape=declared)])
    node = helper.make_node("Loop", ["n", ""], ["y"], body=body)
    inputs = [info("n", TensorProto.INT64, []), info("x", shape=declared)]
    return helper.make_model(helper.make_graph([node], "g", inputs, [info("y")]), ir_version=10)


@pytest.mark.parametrize(("declared", "shape"), [([2, 3], (0, 2, 3)), (["a", 3], (0, 0, 3)), ([], (0,)), (None, (0,))])
def test_no_rows_have_the_shape_of_rows(
    declared: Any, shape: tuple[int, ...], backend: str, backend_context: Any
) -> None:
    """A dim that nobody knows is 0, as in onnxruntime."""
    x = np.zeros([dim if isinstance(dim, int) else 2 for dim in declared or ()], np.float32)
    made = pf.run(loop(declared), {"n": np.array(0), "x": x}, backend=backend, ctx=backend_context)["y"]
    assert made.shape == shape and made.dtype == np.float32


def test_no_rows_of_a_scan(backend: str, backend_context: Any) -> None:
    """Along the axis that the output says."""
    row = [info("x", shape=[2])]
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "body", row, [info("z", shape=[2])])
    node = helper.make_node("Scan", ["rows"], ["y"], body=body, num_scan_inputs=1, scan_output_axes=[-1])
    proto = helper.make_model(helper.make_graph([node], "g", [info("rows", shape=["n", 2])], [info("y")]))
    made = pf.run(proto, {"rows": np.zeros((0, 2), np.float32)}, backend=backend, ctx=backend_context)["y"]
    assert made.shape == (2, 0)
