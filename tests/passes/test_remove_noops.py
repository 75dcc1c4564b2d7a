from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from passes.graphs import apply, check_numbers_stay, graph, node, ops, random

CONSTANTS: dict[str, Any] = {
    "same": np.array([2, 3]),
    "other": np.array([3, 2]),
    "zeros": np.zeros(4, np.int64),
    "pads": np.array([0, 1, 0, 0]),
    "ones": np.array([1, 1]),
    "twice": np.array([1, 2]),
    "start": np.array([0, 0]),
    "far": np.array([9, 9]),
    "axes": np.array([0, 1]),
    "last": np.array([-1, -1]),
    "before": np.array([-9, -9]),
}


def around(middle: onnx.NodeProto, shape: list[Any] | None = None) -> onnx.ModelProto:
    """A layer between two that stay."""
    nodes = [node("Neg", "x", "a"), middle, node("Abs", "b", "y")]
    return graph(nodes, {"x": shape or [2, 3]}, CONSTANTS)


NOOPS = [
    around(node("Identity", "a", "b")),
    around(node("Dropout", "a", "b")),
    around(node("Cast", "a", "b", to=1)),
    around(node("Reshape", "a same", "b")),
    around(node("Transpose", "a", "b", perm=[0, 1])),
    around(node("Pad", "a zeros", "b")),
    around(node("Concat", "a", "b", axis=0)),
    around(node("Expand", "a ones", "b")),
    around(node("Tile", "a ones", "b")),
    around(node("Slice", "a start far", "b")),
    around(node("Slice", "a start far axes ones", "b")),
]
OTHERS = [
    around(node("Cast", "a", "b", to=11)),
    around(node("Reshape", "a other", "b")),
    around(node("Transpose", "a", "b", perm=[1, 0])),
    around(node("Transpose", "a", "b"), [2, 2]),
    around(node("Pad", "a pads", "b")),
    around(node("Concat", "a a", "b", axis=0)),
    around(node("Tile", "a twice", "b")),
    around(node("Slice", "a start same axes twice", "b")),
    around(node("Slice", "a last before axes last", "b")),
    around(node("Relu", "a", "b")),
]


def op_of(model: onnx.ModelProto) -> str:
    return str(model.graph.node[1].op_type)


@pytest.mark.parametrize("model", NOOPS, ids=op_of)
def test_a_layer_that_does_nothing_goes(model: onnx.ModelProto) -> None:
    optimized, changed = apply("remove_noops", model)
    assert (changed, ops(optimized)) == (1, ["Neg", "Abs"])


def test_an_identity_of_an_output_gives_its_name() -> None:
    model = graph([node("Neg", "x", "a"), node("Identity", "a", "y")], {"x": [2, 3]})
    optimized, changed = apply("remove_noops", model)
    assert (changed, ops(optimized), optimized.output_names) == (1, ["Neg"], ["y"])
    for read in (node("Identity", "x", "y"), node("Identity", "same", "y")):
        assert apply("remove_noops", graph([read], {"x": [2, 3]}, CONSTANTS))[1] == 0
    both = graph(
        [node("Neg", "x", "a"), node("Identity", "a", "y"), node("Abs", "a", "z")], {"x": [2, 3]}, outputs="y z"
    )
    assert apply("remove_noops", both)[1] == 0


@pytest.mark.parametrize("model", OTHERS, ids=op_of)
def test_a_layer_that_does_something_stays(model: onnx.ModelProto) -> None:
    optimized, changed = apply("remove_noops", model)
    assert changed == 0 and len(optimized.layers) == 3


@pytest.mark.parametrize(
    ("dims", "shape", "goes"), [(["n", 3], [-1, 3], 1), (["n", 4], [-1, 2], 0), ([None, 3], [-1, 3], 0)]
)
def test_a_reshape_goes_where_its_shape_is_known_to_be_the_same(dims: Any, shape: Any, goes: int) -> None:
    nodes = [node("Neg", "x", "a"), node("Reshape", "a shape", "b"), node("Abs", "b", "y")]
    _, changed = apply("remove_noops", graph(nodes, {"x": dims}, {"shape": np.array(shape)}))
    assert changed == goes


def test_an_output_keeps_its_name() -> None:
    optimized, changed = apply("remove_noops", graph([node("Identity", "x", "y")], {"x": [2]}))
    assert changed == 0 and optimized.output_names == ["y"]


def test_a_dropout_whose_mask_is_read_stays() -> None:
    nodes = [node("Dropout", "x", "a mask"), node("Not", "mask", "z"), node("Abs", "a", "y")]
    _, changed = apply("remove_noops", graph(nodes, {"x": [2]}, outputs="y z"))
    assert changed == 0


@pytest.mark.parametrize("model", NOOPS, ids=op_of)
def test_numbers_stay(model: onnx.ModelProto, backend: str, backend_context: Any) -> None:
    check_numbers_stay(model, {"x": random(2, 3)}, backend, backend_context)


@pytest.mark.parametrize("op", ["Identity", "Dropout"])
def test_names_of_outputs_are_given_at_the_end(op: str) -> None:
    """The pass infers nothing while a value has two makers: a layer of several outputs asks for nothing before."""
    split = node("Split", "x", "a b", axis=1, num_outputs=2)
    model = graph([split, node(op, "a", "y"), node("Relu", "b", "z")], {"x": [2, 4]}, outputs="y z")
    optimized, changed = apply("remove_noops", model)
    assert changed == 1 and ops(optimized) == ["Split", "Relu"]
    assert optimized.layers[0].output_names == ["y", "b"]
