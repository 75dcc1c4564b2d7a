"""Models with channels last, between whose convolutions transpositions meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from passes.graphs import apply, check_numbers_stay, graph, node, ops, random
from perframe.backends import evaluator
from perframe.passes import load_pass
from small import specs

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]
CONSTANTS: dict[str, Any] = {
    "w": random(4, 3, 3, 3, seed=1),
    "v": random(4, 4, 1, 1, seed=2),
    "wide": random(4, 8, 1, 1, seed=3),
    "channels": random(4, seed=4),
    "whole": random(1, 5, 5, 4, seed=5),
    "pads": np.array([0, 1, 2, 0, 0, 1, 0, 0]),
    "begins": np.array([0, 1, 0, 0]),
    "ends": np.array([9, 4, 3, 4]),
    "axes": np.array([1, 2]),
    "sizes": np.array([7, 9]),
    "flat": np.array([2, -1]),
}


def picture(*nodes: onnx.NodeProto, weights: str = "v", outputs: str = "y") -> onnx.ModelProto:
    """Nodes between two convolutions, from "a" to "b", both with their channels last."""
    return graph(
        [
            node("Transpose", "x", "x1", perm=FIRST),
            node("Conv", "x1 w", "a1", pads=[1, 1, 1, 1]),
            node("Transpose", "a1", "a", perm=LAST),
            *nodes,
            node("Transpose", "b", "b1", perm=FIRST),
            node("Conv", f"b1 {weights}", "y1"),
            node("Transpose", "y1", "y", perm=LAST),
        ],
        {"x": [2, 5, 5, 3]},
        CONSTANTS,
        outputs,
    )


MODELS = {
    "activation": picture(node("Relu", "a", "b")),
    "a number for each channel": picture(node("Mul", "a channels", "b")),
    "a constant of all dims": picture(node("Add", "a whole", "b")),
    "padding": picture(node("Pad", "a pads", "b")),
    "slice": picture(node("Slice", "a begins ends", "b")),
    "concatenation": picture(node("Relu", "a", "r"), node("Concat", "a r", "b", axis=3), weights="wide"),
    "softmax": picture(node("Softmax", "a", "b", axis=-1)),
    "resize": picture(node("Resize", "a   sizes", "b", axes=[1, 2], mode="linear")),
    "gate": picture(node("ReduceMean", "a axes", "m", keepdims=1), node("Sigmoid", "m", "s"), node("Mul", "a s", "b")),
    "another reader": picture(node("Relu", "a", "b"), node("Reshape", "b flat", "z"), outputs="y z"),
}


@pytest.mark.parametrize("name", MODELS)
def test_transpositions_between_convolutions_vanish(name: str) -> None:
    model, removed = apply("move_channels", MODELS[name])
    left = [layer for layer in model.layers if layer.op == "Transpose"]
    assert removed >= 1
    assert len(left) == (3 if name == "another reader" else 2)
    assert load_pass("move_channels")(model, evaluator()) == 0, "a second run finds nothing to do"


@pytest.mark.parametrize("name", MODELS)
def test_numbers_stay(name: str, backend: str, gl_context: Any) -> None:
    check_numbers_stay(MODELS[name], {"x": random(2, 5, 5, 3, seed=9)}, backend, gl_context, 1e-4)


def test_padding_before_the_first_convolution_moves_too() -> None:
    nodes = [
        node("Pad", "x pads", "p"),
        node("Transpose", "p", "p1", perm=FIRST),
        node("Conv", "p1 w", "a1"),
        node("Transpose", "a1", "a", perm=LAST),
        node("Relu", "a", "b"),
        node("Transpose", "b", "b1", perm=FIRST),
        node("Conv", "b1 v", "y"),
    ]
    model, _ = apply("move_channels", graph(nodes, {"x": [2, 5, 5, 3]}, CONSTANTS))
    assert ops(model) == ["Transpose", "Pad", "Conv", "Relu", "Conv"]


def test_a_batch_of_unknown_size_stays_unknown() -> None:
    nodes = [
        node("Transpose", "x", "x1", perm=FIRST),
        node("Conv", "x1 v", "a1"),
        node("Transpose", "a1", "a", perm=LAST),
        node("Relu", "a", "b"),
        node("Transpose", "b", "b1", perm=FIRST),
        node("Conv", "b1 v", "y"),
    ]
    model, _ = apply("move_channels", graph(nodes, {"x": ["n", 1, 1, 4]}, CONSTANTS))
    assert ops(model) == ["Reshape", "Conv", "Relu", "Conv"]
    assert str(specs(model)["y"].shape) == "(n, 4, 1, 1)"


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Transpose", "x", "y", perm=FIRST)],
        [node("Transpose", "x", "t", perm=LAST), node("Relu", "t", "r"), node("MatMul", "r m", "y")],
        [
            node("Transpose", "x", "t", perm=LAST),
            node("Relu", "t", "r"),
            node("Transpose", "r", "y", perm=[0, 1, 3, 2]),
        ],
    ],
)
def test_it_does_nothing_where_it_removes_none(nodes: list[onnx.NodeProto]) -> None:
    made = graph(nodes, {"x": [2, 3, 4, 5]}, {"m": random(3, 2, seed=1)})
    model, removed = apply("move_channels", made)
    assert removed == 0
    assert ops(model) == [one.op_type for one in made.graph.node]


@pytest.mark.parametrize("dims", [[1, 1, 1, 1], [2, 5, 5, 3], [1, 1, 1, 4]])
@pytest.mark.parametrize("perm", [FIRST, LAST])
def test_equal_transpositions_that_are_outputs_keep_their_names(
    perm: list[int], dims: list[int], backend: str, gl_context: Any
) -> None:
    nodes = [
        node("Relu", "x", "r"),
        node("Transpose", "r", "y", perm=perm),
        node("Transpose", "r", "z", perm=perm),
        node("Transpose", "z", "back", perm=FIRST if perm == LAST else LAST),
        node("Transpose", "y", "again", perm=FIRST if perm == LAST else LAST),
    ]
    made = graph(nodes, {"x": dims}, outputs="y z back again")
    check_numbers_stay(made, {"x": random(*dims, seed=3)}, backend, gl_context)
