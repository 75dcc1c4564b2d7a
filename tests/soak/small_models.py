"""Small models of each kind for long runs, with their outputs for inputs of ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from small import load, node

Array = NDArray[Any]
WIDTH = 256


def picture(channels: int = 16) -> pf.Model:
    """Three layers of convolutions over pictures of any size, the last one 1 x 1, with open dims."""
    kernel = np.full((channels, 3, 3, 3), 1 / 27, np.float32)
    middle = np.full((channels, channels, 3, 3), 1 / (9 * channels), np.float32)
    last = np.full((3, channels, 1, 1), 1 / channels, np.float32)
    nodes = [
        node("Conv", "x a", "p", pads=[1, 1, 1, 1]),
        node("Relu", "p", "q"),
        node("Conv", "q b", "r", pads=[1, 1, 1, 1]),
        node("MaxPool", "r", "s", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Conv", "s c", "y"),
    ]
    return load(nodes, {"x": ["n", 3, "height", "width"]}, constants={"a": kernel, "b": middle, "c": last})


def products(layers: int = 3) -> pf.Model:
    """Multiplies rows by matrices that keep them; the matrices are large."""
    constants = {f"w{index}": np.eye(WIDTH, dtype=np.float32) for index in range(layers)}
    nodes = [node("MatMul", f"{f't{index - 1}' if index else 'x'} w{index}", f"t{index}") for index in range(layers)]
    return load([*nodes, node("Softsign", f"t{layers - 1}", "y")], {"x": ["n", WIDTH]}, constants=constants)


def table() -> pf.Model:
    """Rows of a table by their indices."""
    values = np.arange(1000 * 64, dtype=np.float32).reshape(1000, 64)
    return load(
        [node("Gather", "table index", "g"), node("Neg", "g", "y")],
        {"index": ["n"]},
        constants={"table": values},
        dtypes={"index": "int64"},
    )


def found() -> pf.Model:
    """The positions of elements above a half. Their number depends on the data, so that the host counts them."""
    nodes = [node("Greater", "x half", "g"), node("NonZero", "g", "z"), node("Cast", "z", "f", to=TensorProto.FLOAT)]
    return load([*nodes, node("Neg", "f", "y")], {"x": ["n"]}, constants={"half": np.float32(0.5)})


def expanded() -> pf.Model:
    """A row as often as another input says: the plan is for its values."""
    nodes = [node("Expand", "x shape", "e"), node("Neg", "e", "y")]
    return load(nodes, {"x": [1, 64], "shape": [2]}, dtypes={"shape": "int64"})


def _info(name: str, kind: int = TensorProto.FLOAT, shape: Any = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def doubling() -> pf.Model:
    """A loop that doubles x as often as n says, and gives all values on the way."""
    nodes = [
        helper.make_node("Identity", ["going"], ["on"]),
        helper.make_node("Add", ["before", "before"], ["after"]),
        helper.make_node("Identity", ["after"], ["row"]),
    ]
    given = [_info("i", TensorProto.INT64, []), _info("going", TensorProto.BOOL, []), _info("before", shape=["k"])]
    made = [_info("on", TensorProto.BOOL, []), _info("after", shape=["k"]), _info("row", shape=["k"])]
    body = helper.make_graph(nodes, "body", given, made)
    loop = helper.make_node("Loop", ["n", "", "x"], ["last", "rows"], name="loop", body=body)
    inputs = [_info("n", TensorProto.INT64, []), _info("x", shape=["k"])]
    graph = helper.make_graph([loop], "doubling", inputs, [_info("last", shape=["k"]), _info("rows")])
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def branching() -> pf.Model:
    """Where the rows are few they are doubled, else negated: shapes decide the branch, and a flag another one."""

    def branch(op: str, inputs: list[str], name: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(op, inputs, [name])], name, [], [_info(name)])

    few = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in (("ten", 10), ("zero", 0))]
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Less", ["rows", "ten"], ["few"]),
        helper.make_node(
            "If", ["few"], ["z"], then_branch=branch("Add", ["x", "x"], "p"), else_branch=branch("Neg", ["x"], "q")
        ),
        helper.make_node(
            "If", ["flag"], ["y"], then_branch=branch("Abs", ["z"], "r"), else_branch=branch("Identity", ["z"], "s")
        ),
    ]
    inputs = [_info("x", shape=["n", 64]), _info("flag", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "branching", inputs, [_info("y", shape=["n", 64])], few)
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
