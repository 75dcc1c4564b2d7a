"""Loops and scans: outputs of loops that never run, states of other shapes, and bodies that do not fit."""

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
    """A loop that collects x n times. Its rows are declared with this shape."""
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
    """An unknown dim is 0, as in onnxruntime."""
    x = np.zeros([dim if isinstance(dim, int) else 2 for dim in declared or ()], np.float32)
    made = pf.run(loop(declared), {"n": np.array(0), "x": x}, backend=backend, ctx=backend_context)["y"]
    assert made.shape == shape and made.dtype == np.float32


def test_no_rows_of_a_scan(backend: str, backend_context: Any) -> None:
    """The empty axis is the one that the output names."""
    row = [info("x", shape=[2])]
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "body", row, [info("z", shape=[2])])
    node = helper.make_node("Scan", ["rows"], ["y"], body=body, num_scan_inputs=1, scan_output_axes=[-1])
    proto = helper.make_model(helper.make_graph([node], "g", [info("rows", shape=["n", 2])], [info("y")]))
    made = pf.run(proto, {"rows": np.zeros((0, 2), np.float32)}, backend=backend, ctx=backend_context)["y"]
    assert made.shape == (2, 0)


def collecting(trips: int) -> onnx.ModelProto:
    """Collects two outputs of one shape and dtype."""
    nodes = [
        helper.make_node("Identity", ["going"], ["on"]),
        helper.make_node("Neg", ["x"], ["minus"]),
        helper.make_node("Exp", ["x"], ["power"]),
    ]
    given = [info("i", TensorProto.INT64, []), info("going", TensorProto.BOOL, [])]
    body = helper.make_graph(nodes, "body", given, [info("on", TensorProto.BOOL, []), info("minus"), info("power")])
    node = helper.make_node("Loop", ["n", ""], ["y", "z"], body=body)
    inputs = [info("n", TensorProto.INT64, []), info("x", shape=[3])]
    return helper.make_model(helper.make_graph([node], "g", inputs, [info("y"), info("z")]), ir_version=10)


@pytest.mark.parametrize("trips", [1, 2, 5])
def test_outputs_that_are_alike_are_collected_apart(trips: int, backend: str, backend_context: Any) -> None:
    x = np.float32([0.5, 1, 2])
    made = pf.run(collecting(trips), {"n": np.array(trips), "x": x}, backend=backend, ctx=backend_context)
    np.testing.assert_allclose(made["y"], np.tile(-x, (trips, 1)))
    np.testing.assert_allclose(made["z"], np.tile(np.exp(x), (trips, 1)), rtol=1e-5)


def test_a_state_of_another_shape_than_its_body_declares(backend: str, backend_context: Any) -> None:
    nodes = [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Neg", ["s"], ["t"])]
    given = [info("i", TensorProto.INT64, []), info("going", TensorProto.BOOL, []), info("s", shape=[3])]
    body = helper.make_graph(nodes, "body", given, [info("on", TensorProto.BOOL, []), info("t", shape=[3])])
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], "states", body=body)
    inputs = [info("n", TensorProto.INT64, []), info("x", shape=None)]
    proto = helper.make_model(helper.make_graph([node], "g", inputs, [info("y")]), ir_version=10)
    loaded = pf.load(proto)
    for shape in ((1, 3), (4,)):
        with pytest.raises(pf.InputError, match=r"'states'.*\(3\).*gets"):
            x = np.ones(shape, np.float32)
            pf.run(loaded, {"n": np.array(2), "x": x}, backend=backend, ctx=backend_context)
    made = pf.run(loaded, {"n": np.array(3), "x": np.ones(3, np.float32)}, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_array_equal(made, -np.ones(3))


NEGATE = helper.make_node("Neg", ["x"], ["z"])


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"num_scan_inputs": 2}, "num_scan_inputs=2"),
        ({"num_scan_inputs": 2**40}, "num_scan_inputs"),
        ({"scan_input_axes": [0, 1]}, "scan_input_axes has 2"),
        ({"scan_input_axes": [2]}, "no axis 2"),
        ({"scan_output_axes": [3]}, "axis 3"),
        ({"scan_input_directions": [1, 1]}, "scan_input_directions has 2"),
        ({"scan_output_directions": [5]}, "scan_output_directions"),
    ],
    ids=str,
)
def test_a_scan_that_does_not_fit(attributes: dict[str, Any], words: str) -> None:
    body = helper.make_graph([NEGATE], "body", [info("x", shape=[2])], [info("z", shape=[2])])
    node = helper.make_node("Scan", ["rows"], ["y"], "cut", body=body, **{"num_scan_inputs": 1, **attributes})
    proto = helper.make_model(helper.make_graph([node], "g", [info("rows", shape=["n", 2])], [info("y")]))
    with pytest.raises(pf.ModelError, match=f"'cut'.*{words}"):
        pf.load(proto)


@pytest.mark.parametrize("inputs", [["n", ""], ["n", "", "x", "x"], ["x", "", "x"], ["n", "x", "x"]], ids=str)
def test_a_loop_that_does_not_fit_its_body(inputs: list[str]) -> None:
    nodes = [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Neg", ["s"], ["t"])]
    given = [info("i", TensorProto.INT64, []), info("going", TensorProto.BOOL, []), info("s")]
    body = helper.make_graph(nodes, "body", given, [info("on", TensorProto.BOOL, []), info("t")])
    node = helper.make_node("Loop", inputs, ["y"], "turns", body=body)
    graph = helper.make_graph([node], "g", [info("n", TensorProto.INT64, []), info("x", shape=[2])], [info("y")])
    with pytest.raises(pf.ModelError, match="turns"):
        pf.load(helper.make_model(graph, ir_version=10))


def test_branches_of_different_types() -> None:
    kinds = (TensorProto.FLOAT, TensorProto.INT64)
    bodies = [
        helper.make_graph([helper.make_node("Cast", ["x"], ["z"], to=kind)], "body", [], [info("z", kind)])
        for kind in kinds
    ]
    node = helper.make_node("If", ["c"], ["y"], "choice", then_branch=bodies[0], else_branch=bodies[1])
    graph = helper.make_graph([node], "g", [info("c", TensorProto.BOOL, []), info("x", shape=[2])], [info("y")])
    with pytest.raises(pf.ModelError, match=r"'choice'.*different types"):
        pf.load(helper.make_model(graph, ir_version=10))


@pytest.mark.parametrize("grows", [True, False])
def test_a_state_grows_beyond_the_shape_that_its_body_declares(grows: bool, backend: str, backend_context: Any) -> None:
    """PyTorch's exporter declares a list that grows with the rows that it has at first."""
    nodes = [
        helper.make_node("Identity", ["going"], ["on"]),
        helper.make_node("Concat" if grows else "Sum", ["rows", "x"], ["more"], **({"axis": 0} if grows else {})),
        helper.make_node("Mul", ["more", "x"], ["twice"], name="product"),
    ]
    first = 0 if grows else 1
    given = [info("i", TensorProto.INT64, []), info("going", TensorProto.BOOL, []), info("rows", shape=[first, 3])]
    body = helper.make_graph(nodes, "body", given, [info("on", TensorProto.BOOL, []), info("twice")])
    node = helper.make_node("Loop", ["n", "", "start"], ["y"], body=body)
    start = helper.make_tensor("start", TensorProto.FLOAT, [first, 3], np.ones(3 * first))
    inputs = [info("n", TensorProto.INT64, []), info("x", shape=[1, 3])]
    graph = helper.make_graph([node], "g", inputs, [info("y")], [start])
    model = pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    loop_layer = next(layer for layer in model.layers if layer.op == "Loop")
    bodies = loop_layer.attributes["bodies"]["body"]
    assert str(bodies.inputs[2].shape) == ("(?, 3)" if grows else "(1, 3)")
    assert "product" in [layer.name for layer in bodies.layers]
    x = np.array([[1, 2, 3]], np.float32)
    made = pf.run(model, {"n": np.array(3), "x": x}, backend=backend, ctx=backend_context)["y"]
    rows = np.zeros((0, 3)) if grows else np.ones((1, 3))
    for _ in range(3):
        rows = (np.concatenate([rows, x]) if grows else rows + x) * x
    np.testing.assert_allclose(made, rows, 1e-5)


def test_a_body_may_give_back_the_sequence_that_it_was_given(backend: str, backend_context: Any) -> None:
    """No layer makes that output."""
    rows = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    given = [info("i", TensorProto.INT64, []), info("going", TensorProto.BOOL, [])]
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["on"])],
        "body",
        [*given, helper.make_value_info("state", rows)],
        [info("on", TensorProto.BOOL, []), helper.make_value_info("state", rows)],
    )
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    inputs = [info("n", TensorProto.INT64, []), helper.make_value_info("x", rows)]
    proto = helper.make_model(
        helper.make_graph([node], "g", inputs, [helper.make_value_info("y", rows)]), ir_version=10
    )
    x = [np.array([1, 2], np.float32), np.array([3, 4], np.float32)]
    made = pf.run(proto, {"n": np.array(2), "x": x}, backend=backend, ctx=backend_context)["y"]
    assert [row.tolist() for row in made] == [[1, 2], [3, 4]]
