"""Sizes are read from the only input that declares them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import perframe as pf
from passes.graphs import apply, check_against_peer, graph, node, random

CONSTANTS: dict[str, Any] = {"two": np.float32(2), "w": random(4, 5, seed=2)}


def counted(of: str, inputs: dict[str, list[Any]], *before: onnx.NodeProto, **sizes: int) -> onnx.ModelProto:
    """A model that counts from 0 to the size of an inner value, made of the given nodes."""
    nodes = [*before, node("Shape", of, "size", **sizes), node("Cast", "size", "y", to=onnx.TensorProto.INT32)]
    used = {name for one in nodes for name in one.input}
    return graph(nodes, inputs, {name: value for name, value in CONSTANTS.items() if name in used}, "y e")


def read(model: pf.Model) -> tuple[str, int, int | None]:
    (layer,) = [layer for layer in model.layers if layer.op == "Shape"]
    return layer.x.name, layer.start, layer.end


INNER = node("MatMul", "x w", "p"), node("Exp", "p", "e")


@pytest.mark.parametrize(
    ("sizes", "axis"), [({"start": 0, "end": 1}, 0), ({"start": -2, "end": -1}, 1), ({"start": 1, "end": 2}, 1)]
)
@pytest.mark.parametrize("shape", [(1, 1, 4), (3, 7, 4), (7, 3, 4)])
def test_an_inner_size_is_read_from_the_input(sizes: dict[str, int], axis: int, shape: tuple[int, ...]) -> None:
    model = counted("e", {"x": ["batch", "n", 4]}, *INNER, **sizes)
    optimized, changed = apply("share_sizes", model)
    assert (changed, read(optimized)) == (1, ("x", axis, axis + 1))
    check_against_peer(model, {"x": random(*shape)})


@pytest.mark.parametrize(
    ("inputs", "before", "sizes"),
    [
        ({"x": ["n", 4], "z": ["n"]}, INNER, {"start": 0, "end": 1}),  # a state may have another size
        ({"x": ["n", 4]}, INNER, {}),  # of several dims
        ({"x": ["n", 4]}, INNER, {"start": 1, "end": 2}),  # a number
        ({"x": ["n", 4]}, (node("Concat", "x x", "c", axis=0), node("Exp", "c", "e")), {"start": 0, "end": 1}),
        ({"x": ["n", "n"]}, (node("Exp", "x", "e"),), {"start": 1, "end": 2}),
    ],
    ids=["two inputs", "all dims", "a number", "another size", "twice"],
)
def test_other_sizes_stay(inputs: dict[str, list[Any]], before: Any, sizes: dict[str, int]) -> None:
    model = counted("e", inputs, *before, **sizes)
    optimized, changed = apply("share_sizes", model)
    assert (changed, read(optimized)[0]) == (0, "e")
    check_against_peer(model, {"x": random(4, 4), "z": random(4)} if "z" in inputs else {"x": random(4, 4)})


def test_equal_work_is_done_once() -> None:
    nodes = [node("MatMul", "x w", "p")]
    for name, source in (("a", "x"), ("b", "p")):
        nodes += [node("Shape", source, f"{name}1", start=0, end=1), node("ConstantOfShape", f"{name}1", f"{name}2")]
    model = graph([*nodes, node("Add", "a2 b2", "y")], {"x": ["n", 4]}, {"w": CONSTANTS["w"]}, "y p")
    made = pf.load(model)
    assert sum(layer.op == "Shape" for layer in made.layers) <= 1
    check_against_peer(model, {"x": random(6, 4)})


def test_a_name_in_a_body_may_mean_another_size() -> None:
    """The body's state grows, and has the name of a dim of the model's input."""
    body = helper.make_graph(
        [
            node("Shape", "e", "size", start=0, end=1),
            node("Cast", "size", "count", to=onnx.TensorProto.FLOAT),
            node("Concat", "s count", "s2", axis=0),
            node("Identity", "go", "go2"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, ["n"]),
        ],
        [
            helper.make_tensor_value_info("go2", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s2", onnx.TensorProto.FLOAT, ["m"]),
        ],
    )
    loop = helper.make_node("Loop", ["three", "", "x"], ["y"], body=body)
    model = graph([node("Exp", "x", "e"), loop], {"x": ["n"]}, {"three": np.array(3, np.int64)}, "y")
    np.testing.assert_array_equal(pf.run(pf.load(model), np.ones(5, np.float32))["y"], [1] * 5 + [5] * 3)
