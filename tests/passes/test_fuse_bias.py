from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from passes.graphs import apply, check_numbers_stay, graph, node, ops, random

CONSTANTS: dict[str, Any] = {
    "w": random(4, 3, 3, 3, seed=1),
    "t": random(3, 4, 2, 2, seed=2),
    "b": random(4, seed=3),
    "channels": random(4, 1, 1, seed=4),
    "columns": random(5, seed=5),
    "number": np.float32(1.7),
    "m": random(7, 5, seed=6),
    "rows": random(3, 1, seed=7),
    "wide": random(2, 3, 5, seed=8),
}


def picture(*nodes: onnx.NodeProto, outputs: str = "y") -> onnx.ModelProto:
    return graph(nodes, {"x": [2, 3, 7, 7]}, CONSTANTS, outputs)


def matrix(*nodes: onnx.NodeProto, shape: Any = (3, 7)) -> onnx.ModelProto:
    return graph(nodes, {"x": list(shape)}, CONSTANTS)


FUSED = {
    "channels": picture(node("Conv", "x w", "a"), node("Add", "a channels", "y")),
    "channels on the left": picture(node("Conv", "x w", "a"), node("Add", "channels a", "y")),
    "onto a bias": picture(node("Conv", "x w b", "a"), node("Add", "a channels", "y")),
    "a number": picture(node("Conv", "x w b", "a"), node("Add", "a number", "y")),
    "a transpose": picture(node("ConvTranspose", "x t", "a"), node("Add", "a channels", "y")),
    "a product": matrix(node("MatMul", "x m", "a"), node("Add", "a columns", "y")),
    "a number to a product": matrix(node("MatMul", "x m", "a"), node("Add", "a number", "y")),
    "a product of batches": matrix(node("MatMul", "x m", "a"), node("Add", "a columns", "y"), shape=(2, 3, 7)),
    "a product of a vector": matrix(node("MatMul", "x m", "a"), node("Add", "a columns", "y"), shape=(7,)),
}
KEPT = {
    "columns of a picture": picture(node("Conv", "x w b", "a"), node("Add", "a columns", "y")),
    "twice itself": picture(node("Conv", "x w b", "a"), node("Add", "a a", "y")),
    "a second reader": picture(
        node("Conv", "x w", "a"), node("Add", "a channels", "y"), node("Relu", "a", "z"), outputs="y z"
    ),
    "an output of the model": picture(node("Conv", "x w", "a"), node("Add", "a channels", "y"), outputs="y a"),
    "a product of two values": matrix(node("MatMul", "x x", "a"), node("Add", "a number", "y"), shape=(7, 7)),
    "rows of a product": matrix(node("MatMul", "x m", "a"), node("Add", "a rows", "y")),
    "more than the product has": matrix(node("MatMul", "x m", "a"), node("Add", "a wide", "y")),
}


def test_a_product_of_weights_in_bytes() -> None:
    weights = node("DequantizeLinear", "bytes step", "v")
    constants = CONSTANTS | {"bytes": np.arange(35, dtype=np.int8).reshape(7, 5), "step": np.float32(0.1)}
    model = graph([weights, node("MatMul", "x v", "a"), node("Add", "a columns", "y")], {"x": [3, 7]}, constants)
    optimized, changed = apply("fuse_bias", model)
    assert changed == 1
    assert ops(optimized) == ["DequantizeLinear", "MatMul"]
    check_numbers_stay(model, {"x": random(3, 7)}, "cpu", None)


@pytest.mark.parametrize("model", FUSED.values(), ids=FUSED)
def test_fires(model: onnx.ModelProto) -> None:
    optimized, changed = apply("fuse_bias", model)
    assert changed == 1
    assert ops(optimized) == [model.graph.node[0].op_type]
    assert len(optimized.layers[0].inputs) == 3


@pytest.mark.parametrize("model", KEPT.values(), ids=KEPT)
def test_does_not_fire(model: onnx.ModelProto) -> None:
    _, changed = apply("fuse_bias", model)
    assert changed == 0


def test_does_not_fire_for_an_addend_that_changes() -> None:
    nodes = [node("Conv", "x w", "a"), node("Add", "a z", "y")]
    _, changed = apply("fuse_bias", graph(nodes, {"x": [1, 3, 5, 5], "z": [4, 1, 1]}, CONSTANTS))
    assert changed == 0


@pytest.mark.parametrize("model", [*FUSED.values(), *KEPT.values()], ids=[*FUSED, *KEPT])
def test_numbers_stay(model: onnx.ModelProto, backend: str, backend_context: Any) -> None:
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    check_numbers_stay(model, {"x": random(*shape)}, backend, backend_context)
