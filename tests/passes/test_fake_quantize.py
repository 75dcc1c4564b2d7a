from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import apply, graph, node, ops, prepared, random

NUMBERS = {
    "s": np.float32(0.02),
    "z": np.uint8(110),
    "t": np.float32(0.03),
    "u": np.uint8(90),
    "i": np.int8(-3),
    "w": random(8, 8, 3, 3),
    "v": random(8),
}
PAIR = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
OTHER_SCALE = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q t u", "y")]
SIGNED = [node("QuantizeLinear", "x s i", "q"), node("DequantizeLinear", "q s i", "y")]
BLOCK = [
    node("QuantizeLinear", "x s z", "q"),
    node("DequantizeLinear", "q s z", "d"),
    node("Conv", "d w v", "c", pads=[1, 1, 1, 1]),
    node("Relu", "c", "r"),
    node("QuantizeLinear", "r t u", "p"),
    node("DequantizeLinear", "p t u", "y"),
]


def model(nodes: Any, outputs: str = "y", **more: Any) -> Any:
    return graph(nodes, {"x": [2, 8, 7, 5]}, {**NUMBERS, **more}, outputs)


@pytest.mark.parametrize("nodes", [PAIR, OTHER_SCALE, SIGNED], ids=["a pair", "another scale", "int8"])
def test_it_fires(nodes: Any) -> None:
    made, changed = apply("fake_quantize", model(nodes))
    assert changed == 1 and "FakeQuantize" in ops(made)


@pytest.mark.parametrize("where", ["gpu_compute", "gpu_pixel"])
def test_a_convolution_rounds_its_own_results(where: str) -> None:
    made = prepared(model(BLOCK), where)
    (conv,) = [layer for layer in made.layers if layer.op == "BlockConv"]
    assert [stage.op for stage in conv.epilogue] == ["Relu", "FakeQuantize"]
    assert not any(layer.op.endswith("quantizeLinear") or layer.op == "QuantizeLinear" for layer in made.layers)


def test_it_does_not_fire() -> None:
    columns = {"s": np.full(8, 0.02, np.float32), "z": np.full(8, 110, np.uint8)}
    assert apply("fake_quantize", model(PAIR, **columns))[1] == 0
    assert apply("fake_quantize", graph(PAIR[1:], {"q": [3]}, NUMBERS, dtype="uint8"))[1] == 0
    assert ops(prepared(model(PAIR)))[0] == "QuantizeLinear"  # the CPU computes with bytes


@pytest.mark.parametrize("nodes", [PAIR, OTHER_SCALE, SIGNED, BLOCK], ids=["a pair", "another scale", "int8", "block"])
@pytest.mark.parametrize("outputs", ["y", "q y"])
def test_the_numbers_stay(nodes: Any, outputs: str, backend: str, backend_context: Any) -> None:
    proto, x = model(nodes, outputs), 3 * random(2, 8, 7, 5, seed=1)
    x[0, 0, 0] = [0.01, 0.03, 0.05, -0.01, 1e30]  # ties, and a number beyond all bytes
    want = pf.run(pf.load(proto, optimize=False), {"x": x}, backend="cpu")
    made = pf.run(proto, {"x": x}, backend=backend, strict=True, ctx=backend_context)
    for name, value in want.items():
        step = 1 if value.dtype == np.uint8 else 0.031  # a sum beside a tie may round to either side
        apart = np.abs(made[name].astype(np.float64) - value.astype(np.float64))
        assert apart.max() <= (step if nodes is BLOCK and name == "y" else 1e-6), name
        assert (apart > 1e-6).mean() < 0.01
