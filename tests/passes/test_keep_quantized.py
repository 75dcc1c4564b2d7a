from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import graph, node, ops, prepared, random
from perframe.testing.cases import expected_by_onnxruntime

CONSTANTS: dict[str, Any] = {
    "s": np.float32(0.05),
    "z": np.uint8(120),
    "t": np.float32(0.07),
    "u": np.uint8(100),
    "v": np.int8(-7),
    "half": np.float32(0.5),
    "axes": np.array([2, 3]),
    "one": np.array([1]),
    "shape": np.array([2, -1]),
    "row": random(5, seed=2),
    "none": np.zeros(0, np.float32),
    "twice": np.array([1, 1, 2, 2], np.float32),
}
SHAPE = {"x": [2, 3, 7, 5], "w": [2, 3, 7, 5]}
READ = [
    node("QuantizeLinear", "x s z", "q"),
    node("DequantizeLinear", "q s z", "a"),
    node("QuantizeLinear", "w t v", "p"),
    node("DequantizeLinear", "p t v", "b"),
]
END, SAME = node("QuantizeLinear", "f t u", "y"), node("QuantizeLinear", "f s z", "y")


def case(*nodes: onnx.NodeProto, outputs: str = "y") -> onnx.ModelProto:
    return graph([*READ, *nodes], SHAPE, CONSTANTS, outputs)


FUSED = {
    "a sum": case(node("Add", "a b", "f"), END),
    "a sum and relu": case(node("Add", "a b", "c"), node("Relu", "c", "f"), END),
    "a sum with itself": case(node("Add", "a a", "f"), END),
    "a sigmoid": case(node("Sigmoid", "a", "f"), END),
    "a chain": case(node("Mul", "a half", "c"), node("Tanh", "c", "e"), node("Sub", "half e", "f"), END),
    "a value twice": case(node("Sigmoid", "a", "c"), node("Mul", "a c", "f"), END),
    "a value twice, quantized in between": case(
        node("Sigmoid", "a", "c"),
        node("QuantizeLinear", "c t u", "g"),
        node("DequantizeLinear", "g t u", "h"),
        node("Mul", "a h", "f"),
        END,
    ),
    "another scale": case(node("QuantizeLinear", "a t u", "y")),
    "the same scale": case(node("QuantizeLinear", "a s z", "y")),
    "the largest": case(node("MaxPool", "a", "f", kernel_shape=[2, 2]), SAME),
    "a move": case(node("Transpose", "a", "f", perm=[0, 2, 3, 1]), SAME),
    "a move to another scale": case(node("Reshape", "a shape", "f"), END),
    "joined": case(node("Concat", "a b", "f", axis=1), END),
    "an average": case(node("GlobalAveragePool", "a", "f"), END),
    "an average of a whole picture": case(node("AveragePool", "a", "f", kernel_shape=[7, 5]), END),
    "a picture of twice the size": case(
        node("Resize", "a none twice", "f", mode="nearest", coordinate_transformation_mode="asymmetric"), SAME
    ),
    "an average without its dims": case(node("ReduceMean", "a axes", "f", keepdims=0), END),
}
LEFT = {
    "real values": case(node("Add", "a x", "f"), END),
    "two values": case(node("Mul", "a b", "f"), END),
    "a sum that is an output": case(node("Add", "a b", "f"), END, outputs="f y"),
    "an average of windows": case(node("AveragePool", "a", "f", kernel_shape=[7, 4]), END),
    "an average with a margin": case(node("AveragePool", "a", "f", kernel_shape=[7, 5], pads=[0, 1, 0, 1]), END),
    "a smooth picture of twice the size": case(node("Resize", "a none twice", "f", mode="linear"), SAME),
    "a row": case(node("Mul", "a row", "f"), END),
    "an average of channels": case(node("ReduceMean", "a one", "f"), END),
    "the largest and where": case(node("MaxPool", "a", "f i", kernel_shape=[2, 2]), SAME, outputs="y i"),
}
FED = {name: random(*shape, seed=index) * 2 for index, (name, shape) in enumerate(SHAPE.items())}


def between(model: pf.Model) -> set[str]:
    """The layers that compute with floats."""
    return set(ops(model)) - {"QuantizeLinear", "LookUp", "QuantizedAdd", "QuantizedMean"}


@pytest.mark.parametrize("name", FUSED)
def test_it_fires(name: str) -> None:
    model = prepared(FUSED[name])
    assert "DequantizeLinear" not in ops(model)
    assert between(model) <= {"Identity", "MaxPool", "Transpose", "Reshape", "Concat", "Squeeze", "Resize"}


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    assert "DequantizeLinear" in ops(prepared(LEFT[name]))


@pytest.mark.parametrize("name", [*FUSED, *LEFT])
def test_the_numbers_stay(name: str, backend: str, backend_context: Any) -> None:
    """To one quantum where sums are rounded in another order."""
    model = (FUSED | LEFT)[name]
    want = expected_by_onnxruntime(model, FED)
    actual = list(pf.run(model, FED, backend=backend, ctx=backend_context).values())
    for value, expected in zip(actual, want, strict=True):
        assert value.dtype == expected.dtype
        difference = np.abs(value.astype(np.float64) - expected)
        assert difference.max() <= (1 if value.dtype == np.uint8 else 1e-5)
        assert np.mean(difference > 1e-5) < 0.02
