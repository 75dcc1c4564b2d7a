"""Functions that a model brings, and the names that its import invents."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import perframe as pf

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
X = np.array([0.1, 0.5, 1.0], np.float32)


def info(name: str, kind: int = TensorProto.FLOAT, shape: Any = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def call(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, outputs, domain="local", **attributes)


def function(name: str, nodes: list[onnx.NodeProto], inputs: tuple[str, ...] = ("a",)) -> onnx.FunctionProto:
    return helper.make_function("local", name, list(inputs), ["b"], nodes, OPSETS)


def model(
    nodes: list[onnx.NodeProto], functions: list[onnx.FunctionProto] = (), constants: dict[str, Any] | None = None
) -> bytes:
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", [info("x", shape=[3])], [info("y")], initializers)
    return helper.make_model(graph, opset_imports=OPSETS, functions=list(functions), ir_version=10).SerializeToString()


NEGATE_EXP = function("Inner", [helper.make_node("Neg", ["a"], ["m"]), helper.make_node("Exp", ["m"], ["b"])])


def test_calls_without_names_keep_their_values_apart() -> None:
    outer = function("Outer", [call("Inner", ["a"], ["m"]), call("Inner", ["m"], ["b"])])
    made = pf.run(model([call("Outer", ["x"], ["y"])], [outer, NEGATE_EXP]), {"x": X})["y"]
    np.testing.assert_allclose(made, np.exp(-np.exp(-X)), rtol=1e-6)


def test_calls_of_one_name_keep_their_values_apart() -> None:
    nodes = [call("Inner", ["x"], ["t"], name="same"), call("Inner", ["t"], ["y"], name="same")]
    loaded = pf.load(model(nodes, [NEGATE_EXP]), optimize=False)
    np.testing.assert_allclose(pf.run(loaded, {"x": X})["y"], np.exp(-np.exp(-X)), rtol=1e-6)
    names = [layer.name for layer in loaded.layers]
    assert len(set(names)) == len(names)


def test_a_calls_inner_value_may_be_called_like_one_of_the_graph() -> None:
    nodes = [helper.make_node("Abs", ["x"], ["same/m"]), call("Inner", ["x"], ["t"], name="same")]
    nodes.append(helper.make_node("Add", ["t", "same/m"], ["y"]))
    made = pf.run(model(nodes, [NEGATE_EXP]), {"x": X})["y"]
    np.testing.assert_allclose(made, np.exp(-X) + X, rtol=1e-6)


@pytest.mark.parametrize("name", ["constant", "constant:1", "constant_0", "u:1", "y:1"])
def test_an_invented_name_meets_none_of_the_file(name: str) -> None:
    """Squeeze of opset 11 makes its axes a constant, a mean of three makes values between."""
    nodes = [
        helper.make_node("Unsqueeze", ["x"], ["u"], axes=[0]),
        helper.make_node("Mean", ["u", name, "u"], ["m"]),
        helper.make_node("Squeeze", ["m"], ["y"], axes=[0]),
    ]
    value = np.array([[10, 20, 30]], np.float32)
    proto = onnx.ModelProto.FromString(model(nodes, constants={name: value}))
    proto.opset_import[0].version = 11
    made = pf.run(proto, {"x": X})["y"]
    np.testing.assert_allclose(made, (2 * X + value[0]) / 3, rtol=1e-6)


def test_an_invented_name_meets_none_of_an_inner_graph() -> None:
    """A branch reads the value of this name in its own graph, not the one that the import added outside."""
    nodes = [helper.make_node("Unsqueeze", ["x"], ["u"], axes=[0])]
    body = helper.make_graph(
        [helper.make_node("Mul", ["u", "constant"], ["z"])],
        "body",
        [],
        [info("z")],
        [numpy_helper.from_array(np.float32([2, 3, 4]), "constant")],
    )
    nodes.append(helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body))
    proto = onnx.ModelProto.FromString(model(nodes))
    proto.opset_import[0].version = 11
    proto.graph.input.append(info("c", TensorProto.BOOL, []))
    made = pf.run(proto, {"x": X, "c": np.array(True)})["y"]
    np.testing.assert_allclose(made, [X * [2, 3, 4]], rtol=1e-6)


@pytest.mark.parametrize("name", ["t:last", "t:last:1", "w:last"])
def test_a_name_that_a_pass_invents_meets_none_of_the_file(name: str, backend: str, backend_context: Any) -> None:
    """A value with its channels last is named after its twin with the channels second."""
    nodes = [
        helper.make_node("Expand", ["x", "shape"], ["p"]),
        helper.make_node("Conv", ["p", "w"], ["t"]),
        helper.make_node("Erf", ["t"], [name]),
        helper.make_node("Conv", ["t", "w"], ["q"]),
        helper.make_node("Softmax", ["q"], ["s"], axis=3),
        helper.make_node("CumSum", [name, "axis"], ["h"]),
        helper.make_node("Add", ["s", "h"], ["y"]),
    ]
    weights = np.full((3, 3, 1, 1), 0.1, np.float32)
    data = model(nodes, constants={"w": weights, "shape": np.int64([1, 3, 2, 3]), "axis": np.int64(3)})
    made = pf.run(data, {"x": X}, backend=backend, ctx=backend_context)["y"]
    (expected,) = ReferenceEvaluator(onnx.ModelProto.FromString(data)).run(None, {"x": X})
    np.testing.assert_allclose(made, expected, rtol=1e-5)


@pytest.mark.parametrize("twice", [False, True])
def test_a_function_that_calls_itself(twice: bool) -> None:
    nodes = [call("Loop", ["a"], ["m"], name="first"), call("Loop", ["m"], ["b"])] if twice else []
    round_trip = function("Loop", nodes or [call("Loop", ["a"], ["b"])])
    with pytest.raises(pf.ModelError, match="calls itself"):
        pf.load(model([call("Loop", ["x"], ["y"])], [round_trip]))


def test_functions_that_call_each_other() -> None:
    first, second = function("F", [call("G", ["a"], ["b"])]), function("G", [call("F", ["a"], ["b"])])
    with pytest.raises(pf.ModelError, match="calls itself"):
        pf.load(model([call("F", ["x"], ["y"])], [first, second]))


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_functions_that_double_at_each_level(named: bool) -> None:
    """A file of two kilobytes stands for a billion nodes."""
    functions = [function("F0", [helper.make_node("Neg", ["a"], ["b"])])]
    for level in range(1, 30):
        names = [{"name": "/"}, {"name": ""}] if named else [{}, {}]
        inner = f"F{level - 1}"
        functions.append(
            function(f"F{level}", [call(inner, ["a"], ["m"], **names[0]), call(inner, ["m"], ["b"], **names[1])])
        )
    with pytest.raises(pf.ModelError, match="stand for more than"):
        pf.load(model([call("F29", ["x"], ["y"])], functions))


def test_slashes_in_a_name_are_no_levels() -> None:
    made = pf.run(model([call("Inner", ["x"], ["y"], name="a/" * 100)], [NEGATE_EXP]), {"x": X})["y"]
    np.testing.assert_allclose(made, np.exp(-X), rtol=1e-6)


def test_overloads_are_functions_of_their_own() -> None:
    first, second = NEGATE_EXP, function("Inner", [helper.make_node("Abs", ["a"], ["b"])])
    second.overload = "other"
    node = call("Inner", ["x"], ["y"])
    node.overload = "other"
    np.testing.assert_array_equal(pf.run(model([node], [first, second]), {"x": -X})["y"], X)
    second.overload = ""
    with pytest.raises(pf.ModelError, match="twice"):
        pf.load(model([node], [first, second]))


@pytest.mark.parametrize(("inputs", "outputs"), [(["x", "x"], ["y"]), (["x"], ["y", "z"])])
def test_a_call_that_does_not_fit_its_function(inputs: list[str], outputs: list[str]) -> None:
    with pytest.raises(pf.ModelError, match=r"the function has 1 (in|out)put"):
        pf.load(model([call("Inner", inputs, outputs)], [NEGATE_EXP]))


def sequence_map(source: list[str], around: str = "") -> onnx.NodeProto:
    inner = helper.make_node("Add", ["e", around], ["f"]) if around else helper.make_node("Neg", ["e"], ["f"])
    body = helper.make_graph([inner], "each", [info("e")], [info("f")])
    return helper.make_node("SequenceMap", source, ["q"], body=body)


def sequences(nodes: list[onnx.NodeProto], output: str = "q") -> onnx.ModelProto:
    inputs = [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None), info("x", shape=[3])]
    inputs.append(info("c", TensorProto.BOOL, []))
    outputs = [helper.make_tensor_sequence_value_info(output, TensorProto.FLOAT, None)]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=OPSETS, ir_version=8)


@pytest.mark.parametrize("source", [[], [""], ["x"], ["nowhere"], ["s", "nowhere"]], ids=str)
def test_a_sequence_map_without_a_sequence(source: list[str]) -> None:
    """ONNX's library, which writes its body, crashes on each of these."""
    with pytest.raises(pf.ModelError, match="SequenceMap"):
        pf.load(sequences([sequence_map(source)]))


@pytest.mark.parametrize("around", ["", "x"])
def test_a_sequence_map_in_a_branch(around: str) -> None:
    outputs = [helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None)]
    body = helper.make_graph([sequence_map(["s"], around)], "body", [], outputs)
    proto = sequences([helper.make_node("If", ["c"], ["r"], then_branch=body, else_branch=body)], "r")
    given = {"s": [X, 2 * X], "x": X, "c": np.array(True)}
    made = pf.run(proto, {name: given[name] for name in ("s", "x", "c")})["r"]
    np.testing.assert_allclose(made, [2 * X, 3 * X] if around else [-X, -2 * X])


def test_a_sequence_map_in_a_sequence_map() -> None:
    inner = sequence_map(["t"])
    inner.output[0] = "u"
    nodes = [
        helper.make_node("SequenceConstruct", ["d"], ["t"]),
        inner,
        helper.make_node("ConcatFromSequence", ["u"], ["h"], axis=0),
    ]
    body = helper.make_graph(nodes, "outer", [info("d")], [info("h")])
    proto = sequences([helper.make_node("SequenceMap", ["s"], ["q"], body=body)])
    made = pf.run(proto, {"s": [X, 2 * X], "x": X, "c": np.array(True)})["q"]
    np.testing.assert_allclose(made, [-X, -2 * X])
