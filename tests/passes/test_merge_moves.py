"""Chains of transpositions and reshapes, and the operands of products that are transposed or scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import apply, check_against_peer, graph, node, ops, random
from perframe.backends import evaluator
from perframe.passes import load_pass

CONSTANTS: dict[str, Any] = {
    "two": np.float32(2),
    "half": np.float32(0.5),
    "deep": np.full((1, 1, 1, 1), 3, np.float32),
    "w": random(6, 4, seed=1),
    "columns": random(4, seed=2),
    "v": random(4, 3, seed=3),
    "to_6_35": np.array([6, 35], np.int64),
    "to_rest": np.array([-1, 5], np.int64),
    "axis1": np.array([1], np.int64),
    "first": np.array([0], np.int64),
}


def cube(*nodes: onnx.NodeProto, outputs: str = "y", shape: Any = (5, 6, 7)) -> onnx.ModelProto:
    return graph(nodes, {"x": list(shape)}, CONSTANTS, outputs)


def pair(*nodes: onnx.NodeProto, outputs: str = "y", x: Any = (2, 5, 6), z: Any = (2, 7, 6)) -> onnx.ModelProto:
    return graph(nodes, {"x": list(x), "z": list(z)}, CONSTANTS, outputs)


TRANSPOSED = (node("Transpose", "x", "a", perm=[2, 0, 1]),)
MERGED = {
    "two transpositions": (cube(*TRANSPOSED, node("Transpose", "a", "y", perm=[0, 2, 1])), ["Transpose"]),
    "to and fro": (
        cube(
            *TRANSPOSED, node("Relu", "a", "b"), node("Mul", "two b", "c"), node("Transpose", "c", "y", perm=[1, 2, 0])
        ),
        ["Relu", "Mul"],
    ),
    "reversed twice": (cube(node("Transpose", "x", "a"), node("Transpose", "a", "y")), ["Transpose"]),
    "two reshapes": (cube(node("Reshape", "x to_6_35", "a"), node("Reshape", "a to_rest", "y")), ["Reshape"]),
    "a flattened square": (
        cube(node("Unsqueeze", "x axis1", "a"), node("Flatten", "a", "y", axis=2), shape=("batch", 6, 7)),
        ["Reshape"],
    ),
    "an Unsqueeze behind a Transpose": (
        cube(node("Reshape", "x to_6_35", "a"), node("Transpose", "a", "b"), node("Unsqueeze", "b first", "y")),
        ["Reshape", "Transpose"],
    ),
}
KEPT = {
    "a value read on the way": cube(
        *TRANSPOSED,
        node("Relu", "a", "b"),
        node("Transpose", "b", "y", perm=[1, 2, 0]),
        node("Neg", "a", "z"),
        outputs="y z",
    ),
    "a number with more dims": cube(
        *TRANSPOSED, node("Mul", "a deep", "b"), node("Transpose", "b", "y", perm=[0, 2, 3, 1])
    ),
    "another order": cube(*TRANSPOSED, node("Relu", "a", "b"), node("Transpose", "b", "y", perm=[2, 1, 0])),
    "two open dims": cube(
        node("Unsqueeze", "x axis1", "a"), node("Unsqueeze", "a first", "y"), shape=("rows", "columns", 7)
    ),
    "a sum on the way": cube(*TRANSPOSED, node("ReduceSum", "a first", "b"), node("Transpose", "b", "y")),
}


@pytest.mark.parametrize("name", MERGED)
def test_moves_are_merged(name: str, backend: str, backend_context: Any) -> None:
    model, expected = MERGED[name]
    loaded = pf.load(model, optimize=False)
    for one in ("merge_moves", "merge_moves", "remove_noops", "remove_unused"):
        load_pass(one)(loaded, evaluator())
        loaded.verify()
    assert ops(loaded) == expected
    shape = [5 if isinstance(dim, str) else dim for dim in loaded.inputs[0].shape or ()]
    check_against_peer(model, {"x": random(*shape)}, backend, backend_context)


@pytest.mark.parametrize("name", KEPT)
def test_moves_are_kept(name: str, backend: str, backend_context: Any) -> None:
    model = KEPT[name]
    optimized, changed = apply("merge_moves", model)
    assert changed == 0 and len(optimized.layers) == len(model.graph.node)
    check_against_peer(model, {"x": random(5, 6, 7)}, backend, backend_context)


FUSED = {
    "the right operand": (pair(node("Transpose", "z", "t", perm=[0, 2, 1]), node("MatMul", "x t", "y")), {"transB": 1}),
    "the left operand": (
        pair(node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "t z", "y"), x=(2, 7, 5)),
        {"transA": 1},
    ),
    "both": (
        pair(
            node("Transpose", "x", "s", perm=[0, 2, 1]),
            node("Transpose", "z", "t", perm=[0, 2, 1]),
            node("MatMul", "s t", "y"),
            x=(3, 6, 11),
            z=(3, 13, 6),
        ),
        {"transA": 1, "transB": 1},
    ),
    "a vector's matrix": (
        pair(node("Transpose", "z", "t"), node("MatMul", "x t", "y"), x=(6,), z=(7, 6)),
        {"transB": 1},
    ),
    "a batch that repeats": (
        pair(node("Transpose", "x", "t", perm=[0, 1, 3, 2]), node("MatMul", "t z", "y"), x=(3, 1, 6, 17), z=(2, 6, 19)),
        {"transA": 1},
    ),
}


@pytest.mark.parametrize("name", FUSED)
def test_transposes_join_products(name: str, backend: str, backend_context: Any) -> None:
    model, attributes = FUSED[name]
    optimized, changed = apply("fuse_transposes", model)
    assert (changed, ops(optimized), optimized.layers[0].attributes) == (len(attributes), ["MatMul"], attributes)
    shapes = [list(value.shape or ()) for value in optimized.inputs]
    check_against_peer(model, {"x": random(*shapes[0]), "z": random(*shapes[1], seed=2)}, backend, backend_context)


def test_other_transposes_stay() -> None:
    for model in (
        pair(node("Transpose", "z", "t", perm=[2, 1, 0]), node("MatMul", "x t", "y"), x=(6, 5, 7), z=(2, 7, 6)),
        pair(node("Transpose", "z", "t", perm=[0, 2, 1]), node("MatMul", "x t", "y"), outputs="y t"),
    ):
        assert apply("fuse_transposes", model)[1] == 0


SCALED = {
    "the left operand": (pair(node("Mul", "x half", "s"), node("MatMul", "s z", "y"), z=(2, 6, 3)), "MatMul+Mul"),
    "by a division": (pair(node("Div", "x two", "s"), node("MatMul", "s z", "y"), z=(2, 6, 3)), "MatMul+Mul"),
    "both": (
        pair(node("Mul", "x half", "s"), node("Mul", "two z", "t"), node("MatMul", "s t", "y"), z=(2, 6, 3)),
        "MatMul+Mul",
    ),
    "constant weights": (
        graph([node("Mul", "x half", "s"), node("MatMul", "s w", "y")], {"x": [5, 6]}, CONSTANTS),
        "MatMul",
    ),
}


@pytest.mark.parametrize("name", SCALED)
def test_factors_join_products(name: str, backend: str, backend_context: Any) -> None:
    model, expected = SCALED[name]
    optimized, changed = apply("fuse_scale", model)
    assert changed == len(model.graph.node) - 1 and ops(optimized) == [expected]
    inputs = {value.name: random(*(value.shape or ()), seed=3) for value in optimized.inputs}
    check_against_peer(model, inputs, backend, backend_context)


def test_other_factors_stay() -> None:
    for model in (
        pair(node("Mul", "x half", "s"), node("MatMul", "s z", "y"), z=(2, 6, 3), outputs="y s"),
        pair(node("Div", "half x", "s"), node("MatMul", "s z", "y"), z=(2, 6, 3)),
        graph([node("Mul", "x columns", "s"), node("MatMul", "s v", "y")], {"x": [5, 4]}, CONSTANTS),
    ):
        assert apply("fuse_scale", model)[1] == 0


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_a_normalization_between_transpositions_keeps_its_axis(rank: int, channels: int) -> None:
    """One channel makes its parameters look like numbers; TensorFlow's exports have such layers."""
    shape = [*[2, 5, 6, 4][: rank - 1], channels]
    constants = {name: np.abs(random(channels, seed=at)) + 0.5 for at, name in enumerate("sbmv")}
    nodes = [
        node("Relu", "x", "a"),
        node("Transpose", "a", "t", perm=[0, rank - 1, *range(1, rank - 1)]),
        node("BatchNormalization", "t s b m v", "u"),
        node("Abs", "u", "w"),
        node("Transpose", "w", "y", perm=[0, *range(2, rank), 1]),
    ]
    model = graph(nodes, {"x": shape}, constants)
    assert "BatchNormalization" in ops(apply("merge_moves", model)[0])
    check_against_peer(model, {"x": random(*shape, seed=9)})
