from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from passes.graphs import apply, check_numbers_stay, graph, node, ops, random
from perframe.ir.declaration import registry

CONSTANTS: dict[str, Any] = {
    "w": random(4, 3, 3, 3, seed=1),
    "t": random(3, 4, 2, 2, seed=2),
    "channels": random(4, 1, 1, seed=3),
    "number": np.full((1, 1), 1.7, np.float32),
    "low": np.float32(-0.5),
    "high": np.float32(0.25),
    "five": np.ones((1, 1, 1, 1, 1), np.float32),
    "m": random(7, 5, seed=4),
}


def picture(*nodes: onnx.NodeProto, outputs: str = "y") -> onnx.ModelProto:
    return graph([node("Conv", "x w", "a"), *nodes], {"x": [2, 3, 5, 5]}, CONSTANTS, outputs)


FUSED = {
    "Conv+Relu": picture(node("Relu", "a", "y")),
    "Conv+LeakyRelu": picture(node("LeakyRelu", "a", "y", alpha=0.3)),
    "Conv+Clip": picture(node("Clip", "a low high", "y")),
    "Conv+Clip of one bound": picture(node("Clip", "a low", "y")),
    "Conv+Mul": picture(node("Mul", "a number", "y")),
    "Conv+Sub": picture(node("Sub", "low a", "y")),
    "Conv+Div": picture(node("Div", "number a", "y")),
    "Conv+Gelu": picture(node("Gelu", "a", "y", approximate="tanh")),
    "Conv+Sigmoid+Mul+LeakyRelu": picture(
        node("Sigmoid", "a", "b"), node("Mul", "b number", "c"), node("LeakyRelu", "c", "y", alpha=0.3)
    ),
    "Conv+HardSigmoid+Clip": picture(
        node("HardSigmoid", "a", "b", alpha=0.1, beta=0.4), node("Clip", "b low high", "y")
    ),
    "ConvTranspose+Relu": graph(
        [node("ConvTranspose", "x t", "a"), node("Relu", "a", "y")], {"x": [2, 3, 5, 5]}, CONSTANTS
    ),
    "MatMul+Tanh": graph([node("MatMul", "x m", "a"), node("Tanh", "a", "y")], {"x": [3, 7]}, CONSTANTS),
    "Gemm+Elu": graph([node("Gemm", "x m", "a"), node("Elu", "a", "y", alpha=0.7)], {"x": [3, 7]}, CONSTANTS),
    "Add+Relu": graph([node("Add", "x z", "a"), node("Relu", "a", "y")], {"x": [3, 1], "z": [1, 5]}, CONSTANTS),
    "LeakyRelu+Clip": graph(
        [node("LeakyRelu", "x", "a", alpha=0.3), node("Clip", "a low high", "y")], {"x": [3, 7]}, CONSTANTS
    ),
}
KEPT = {
    "a second reader": picture(node("Relu", "a", "y"), node("Neg", "a", "z"), outputs="y z"),
    "an output of the model": picture(node("Relu", "a", "y"), outputs="y a"),
    "a vector": picture(node("Mul", "a channels", "y")),
    "the square": picture(node("Mul", "a a", "y")),
    "another dtype": picture(node("Cast", "a", "y", to=11)),
    "a comparison": picture(node("Greater", "a number", "y")),
    "more dims": picture(node("Mul", "a five", "y")),
    "a pooling": graph([node("MaxPool", "x", "a", kernel_shape=[2, 2]), node("Relu", "a", "y")], {"x": [1, 3, 5, 5]}),
    "integers": graph([node("Add", "x z", "a"), node("Neg", "a", "y")], {"x": [3], "z": [3]}, dtype="int64"),
}


@pytest.mark.parametrize(("name", "model"), FUSED.items(), ids=FUSED)
def test_fires(name: str, model: onnx.ModelProto) -> None:
    optimized, _ = apply("fuse_activation", model)
    assert ops(optimized) == [name.split(" ")[0]]
    assert optimized.layers[0].output_names == ["y"]


@pytest.mark.parametrize("model", KEPT.values(), ids=KEPT)
def test_does_not_fire(model: onnx.ModelProto) -> None:
    _, changed = apply("fuse_activation", model)
    assert changed == 0


def test_an_epilogue_stays_short() -> None:
    nodes = [node("Relu" if i % 2 else "Neg", f"v{i}", f"v{i + 1}") for i in range(10)]
    optimized, _ = apply("fuse_activation", graph(nodes, {"v0": [3]}, outputs="v10"))
    assert all(len(layer.epilogue) <= 4 for layer in optimized.layers)
    assert sum(1 + len(layer.epilogue) for layer in optimized.layers) == 10


def fed(model: onnx.ModelProto) -> dict[str, Any]:
    found = {}
    for index, value in enumerate(model.graph.input):
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        found[value.name] = random(*shape, seed=index).astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return found


@pytest.mark.parametrize("model", [*FUSED.values(), *KEPT.values()], ids=[*FUSED, *KEPT])
def test_numbers_stay(model: onnx.ModelProto, backend: str, backend_context: Any) -> None:
    check_numbers_stay(model, fed(model), backend, backend_context)


ALONE = sorted(
    name
    for name, entry in registry().items()
    if entry.family == "elementwise"
    and len(entry.inputs) == 1
    and "float" in entry.dtypes
    and "to" not in entry.attributes
)


@pytest.mark.parametrize("op", ALONE)
def test_every_formula_of_one_input_can_be_an_epilogue(op: str, backend: str, backend_context: Any) -> None:
    """Behind a layer that brings its input into the declared domain."""
    low, high = registry()[op].ranges[0]
    constants = {"low": np.float32(low), "high": np.float32(high)}
    model = graph([node("Clip", "x low high", "a"), node(op, "a", "y")], {"x": [3, 7]}, constants)
    check_numbers_stay(model, {"x": random(3, 7) * 5}, backend, backend_context, 1e-4)
