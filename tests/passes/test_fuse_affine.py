from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from passes.graphs import apply, check_numbers_stay, graph, node, ops, random

CONSTANTS: dict[str, Any] = {
    "w": random(4, 3, 3, 3, seed=1),
    "t": random(3, 4, 3, 3, seed=2),
    "grouped": random(4, 2, 3, 3, seed=3),
    "b": random(4, seed=4),
    "scale": random(4, seed=5),
    "shift": random(4, seed=6),
    "mean": random(4, seed=7),
    "variance": np.abs(random(4, seed=8)) + 0.5,
    "channels": random(4, 1, 1, seed=9),
    "columns": random(5, seed=10),
    "number": np.float32(1.7),
}
NORMALIZATION = node("BatchNormalization", "a scale shift mean variance", "y", epsilon=0.01)


def pair(
    first: onnx.NodeProto, second: onnx.NodeProto, *more: onnx.NodeProto, channels: int = 3, outputs: str = "y"
) -> onnx.ModelProto:
    return graph([first, second, *more], {"x": [2, channels, 7, 7]}, CONSTANTS, outputs)


FUSED = {
    "batch normalization": pair(node("Conv", "x w", "a"), NORMALIZATION),
    "batch normalization of a bias": pair(node("Conv", "x w b", "a", strides=[2, 2]), NORMALIZATION),
    "groups": pair(node("Conv", "x grouped b", "a", group=2), NORMALIZATION, channels=4),
    "a transpose": pair(node("ConvTranspose", "x t b", "a"), NORMALIZATION),
    "a factor for each channel": pair(node("Conv", "x w b", "a"), node("Mul", "a channels", "y")),
    "a factor on the left": pair(node("Conv", "x w", "a"), node("Mul", "channels a", "y")),
    "a number": pair(node("Conv", "x w b", "a"), node("Mul", "a number", "y")),
}
KEPT = {
    "a factor for each column": pair(node("Conv", "x w b", "a"), node("Mul", "a columns", "y")),
    "the square": pair(node("Conv", "x w b", "a"), node("Mul", "a a", "y")),
    "a second reader": pair(node("Conv", "x w b", "a"), NORMALIZATION, node("Relu", "a", "z"), outputs="y z"),
    "an output of the model": pair(node("Conv", "x w b", "a"), NORMALIZATION, outputs="y a"),
    "a pooling": pair(node("MaxPool", "x", "a", kernel_shape=[3, 3]), node("Mul", "a number", "y")),
}


@pytest.mark.parametrize("model", FUSED.values(), ids=FUSED)
def test_fires(model: onnx.ModelProto) -> None:
    optimized, changed = apply("fuse_affine", model)
    assert changed == 1
    assert ops(optimized) == [model.graph.node[0].op_type]
    assert optimized.layers[0].output_names == ["y"]


@pytest.mark.parametrize("model", KEPT.values(), ids=KEPT)
def test_does_not_fire(model: onnx.ModelProto) -> None:
    _, changed = apply("fuse_affine", model)
    assert changed == 0


def test_does_not_fire_for_weights_that_change() -> None:
    nodes = [node("Conv", "x v", "a"), node("Mul", "a number", "y")]
    _, changed = apply("fuse_affine", graph(nodes, {"x": [1, 3, 5, 5], "v": [4, 3, 3, 3]}, CONSTANTS))
    assert changed == 0


def test_weights_that_another_convolution_reads_keep_their_values() -> None:
    nodes = [node("Conv", "x w", "a"), node("Mul", "a number", "y"), node("Conv", "x w", "z")]
    optimized, changed = apply("fuse_affine", graph(nodes, {"x": [1, 3, 5, 5]}, CONSTANTS, "y z"))
    assert changed == 1
    np.testing.assert_array_equal(optimized.constants["w"], CONSTANTS["w"])


@pytest.mark.parametrize("model", [*FUSED.values(), *KEPT.values()], ids=[*FUSED, *KEPT])
def test_numbers_stay(model: onnx.ModelProto, backend: str, backend_context: Any) -> None:
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    check_numbers_stay(model, {"x": random(*shape)}, backend, backend_context)
