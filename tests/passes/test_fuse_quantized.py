from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import graph, node, ops, prepared, random
from perframe.testing.cases import expected_by_onnxruntime

UNIT = np.float32(0.05)
CONSTANTS: dict[str, Any] = {
    "s": UNIT,
    "z": np.uint8(128),
    "t": np.float32(0.5),
    "u": np.uint8(3),
    "ws": np.array([0.02, 0.03, 0.04, 0.05], np.float32),
    "wz": np.zeros(4, np.int8),
    "one": np.float32(0.02),
    "none": np.int8(0),
    "k": random(4, 3, 3, 3, seed=1).astype(np.int8) * 40,
    "w": (random(6, 4, seed=2) * 40).astype(np.int8),
    "wt": (random(4, 6, seed=2) * 40).astype(np.int8),
    "c": np.array([100, -200, 300, -400], np.int32),
    "cs": np.array([0.02, 0.03, 0.04, 0.05], np.float32) * UNIT,
    "cz": np.zeros(4, np.int32),
    "b": random(4, seed=3),
    "six": np.float32(6),
    "zero": np.float32(0),
    "half": np.float32(0.5),
}
IMAGE, ROWS = {"x": [2, 3, 7, 5]}, {"x": [5, 6]}
READ = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d")]
KERNEL = node("DequantizeLinear", "k ws wz", "kernel", axis=0)
WEIGHTS = node("DequantizeLinear", "w ws wz", "weights", axis=1)
ONE = node("DequantizeLinear", "w one none", "weights")
BIAS = node("DequantizeLinear", "c cs cz", "bias", axis=0)
ROUND, REAL = node("QuantizeLinear", "f t u", "r"), node("DequantizeLinear", "r t u", "y")
END = [ROUND, REAL]


def case(shape: Any, *nodes: onnx.NodeProto, outputs: str = "y", **constants: Any) -> onnx.ModelProto:
    return graph([*READ, *nodes], shape, CONSTANTS | constants, outputs)


DYNAMIC = [
    node("DynamicQuantizeLinear", "x", "q xs xz"),
    node("MatMulInteger", "q w xz none", "i"),
    node("Cast", "i", "g", to=1),
]
FUSED = {
    "a convolution": case(IMAGE, KERNEL, node("Conv", "d kernel", "f"), *END),
    "with a bias": case(IMAGE, KERNEL, BIAS, node("Conv", "d kernel bias", "f"), *END),
    "with a real bias": case(IMAGE, KERNEL, node("Conv", "d kernel b", "f"), *END),
    "then relu": case(IMAGE, KERNEL, node("Conv", "d kernel", "e"), node("Relu", "e", "f"), *END),
    "then relu6": case(IMAGE, KERNEL, node("Conv", "d kernel", "e"), node("Clip", "e zero six", "f"), *END),
    "then sigmoid": case(IMAGE, KERNEL, node("Conv", "d kernel", "e"), node("Sigmoid", "e", "y")),
    "a product": case(ROWS, WEIGHTS, node("MatMul", "d weights", "f"), *END),
    "of one scale": case(ROWS, ONE, node("MatMul", "d weights", "f"), *END),
    "a sum": case(
        ROWS, node("DequantizeLinear", "wt ws wz", "v", axis=0), BIAS, node("Gemm", "d v bias", "f", transB=1), *END
    ),
    "a real end": case(ROWS, WEIGHTS, node("MatMul", "d weights", "y")),
    "by its own range": graph(
        [
            *DYNAMIC,
            node("Mul", "xs one", "m"),
            node("Mul", "g m", "a"),
            node("Add", "a b", "f"),
            node("Relu", "f", "y"),
        ],
        ROWS,
        CONSTANTS,
    ),
    "by its own range and the columns'": graph(
        [*DYNAMIC, node("Mul", "xs ws", "m"), node("Mul", "g m", "y")], ROWS, CONSTANTS
    ),
}
LEFT = {
    "real weights": case(ROWS, node("MatMul", "d real", "f"), *END, real=random(6, 4, seed=5)),
    "real data": case(ROWS, WEIGHTS, node("MatMul", "x weights", "f"), *END),
    "weights in rows": case(
        ROWS,
        node("DequantizeLinear", "w rs rz", "weights", axis=0),
        node("MatMul", "d weights", "f"),
        *END,
        rs=np.full(6, 0.02, np.float32),
        rz=np.zeros(6, np.int8),
    ),
    "a factor": case(ROWS, WEIGHTS, node("Gemm", "d weights", "f", alpha=0.5), *END),
    "a transposed left side": case({"x": [6, 5]}, WEIGHTS, node("Gemm", "d weights", "f", transA=1), *END),
    "real values of each channel by itself": case(
        IMAGE,
        node("DequantizeLinear", "alone one none", "kernel"),
        node("Conv", "d kernel", "y", group=3),
        alone=(random(3, 1, 3, 3, seed=6) * 40).astype(np.int8),
    ),
    "groups of few channels": graph(
        [*READ, node("DequantizeLinear", "pairs one none", "kernel"), node("Conv", "d kernel", "f", group=2), *END],
        {"x": [2, 4, 7, 5]},
        CONSTANTS | {"pairs": (random(4, 2, 3, 3, seed=6) * 40).astype(np.int8)},
    ),
    "scales that are not known": graph(
        [*READ[:1], node("DequantizeLinear", "q n z", "d"), WEIGHTS, node("MatMul", "d weights", "y")],
        ROWS | {"n": []},
        CONSTANTS,
    ),
}


def fed(name: str) -> dict[str, Any]:
    model = (FUSED | LEFT)[name]
    given = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    return {key: random(*shape, seed=7) * 3 if shape else np.array(0.04, np.float32) for key, shape in given.items()}


@pytest.mark.parametrize("name", FUSED)
def test_it_fires(name: str) -> None:
    found = ops(prepared(FUSED[name]))
    assert any(op.startswith("Quantized") for op in found)
    assert not {"Conv", "MatMul", "Gemm", "Add", "Cast"} & set(found)


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    assert not any(op.startswith("Quantized") for op in ops(prepared(LEFT[name])))


@pytest.mark.parametrize("name", [*FUSED, *LEFT])
def test_the_numbers_stay(name: str, backend: str, backend_context: Any) -> None:
    """To one quantum: a real product rounds its sums, and what lies in the middle of two may go to either."""
    model = (FUSED | LEFT)[name]
    want = expected_by_onnxruntime(model, fed(name))[0]
    actual = pf.run(model, fed(name), backend=backend, ctx=backend_context)["y"]
    quantum = 0.5 if any(n.output[0] == "r" for n in model.graph.node) else 0.0
    np.testing.assert_allclose(actual, want, 1e-5, quantum + 1e-5)
    assert np.mean(np.abs(actual - want) > 1e-4) < 0.02
