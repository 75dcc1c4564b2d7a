from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import check_against_peer, graph, node, ops, random

CONSTANTS: dict[str, Any] = {
    "w": random(4, 3, 3, 3, seed=1),
    "m": random(7, 5, seed=2),
    "three": np.float32(3),
    "zero": np.float32(0),
    "six": np.float32(6),
    "half": np.float32(0.5),
    "root": np.float32(2**0.5),
    "one": np.float32(1),
    "sixth": np.float32(1 / 6),
}


def picture(*nodes: onnx.NodeProto, outputs: str = "y") -> onnx.ModelProto:
    return graph([node("Conv", "x w", "a"), *nodes], {"x": [2, 3, 5, 5]}, CONSTANTS, outputs)


FUSED = {
    "x * sigmoid(x)": picture(node("Sigmoid", "a", "b"), node("Mul", "a b", "y")),
    "the gate first": picture(node("Sigmoid", "a", "b"), node("Mul", "b a", "y")),
    "hard swish": picture(
        node("Add", "a three", "b"),
        node("Clip", "b zero six", "c"),
        node("Mul", "c sixth", "d"),
        node("Mul", "a d", "y"),
    ),
    "x * tanh(softplus(x)), then relu": picture(
        node("Softplus", "a", "b"), node("Tanh", "b", "c"), node("Mul", "a c", "d"), node("Relu", "d", "y")
    ),
    "gelu": graph(
        [
            node("MatMul", "x m", "a"),
            node("Div", "a root", "b"),
            node("Erf", "b", "c"),
            node("Add", "c one", "d"),
            node("Mul", "a d", "e"),
            node("Mul", "e half", "y"),
        ],
        {"x": [3, 7]},
        CONSTANTS,
    ),
    "x - exp(x)": picture(node("Exp", "a", "b"), node("Sub", "a b", "y")),
    "exp(x) - x": picture(node("Exp", "a", "b"), node("Sub", "b a", "y")),
}
LEFT = {
    "a value that is read elsewhere": picture(
        node("Tanh", "a", "b"), node("Mul", "a b", "c"), node("GlobalMaxPool", "a", "d"), node("Add", "c d", "y")
    ),
    "a value that is an output": picture(node("Sigmoid", "a", "b"), node("Mul", "a b", "y"), outputs="a y"),
    "a gate that is an output": picture(node("Sigmoid", "a", "b"), node("Mul", "a b", "y"), outputs="b y"),
    "a gate of something else": picture(
        node("Sigmoid", "x", "b"),
        node("GlobalAveragePool", "b", "c"),
        node("ReduceMean", "c", "d"),
        node("Mul", "a d", "y"),
    ),
}


@pytest.mark.parametrize("name", FUSED)
def test_it_fires(name: str) -> None:
    assert len(ops(pf.load(FUSED[name]))) == 1


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    assert len(ops(pf.load(LEFT[name]))) > 1


@pytest.mark.parametrize("name", [*FUSED, *LEFT])
def test_the_numbers_stay(name: str, backend: str, backend_context: Any) -> None:
    model = (FUSED | LEFT)[name]
    x = random(3, 7) if name == "gelu" else random(2, 3, 5, 5)
    check_against_peer(model, {"x": x}, backend, backend_context)


def test_gates_with_more_numbers_than_an_epilogue_takes(backend: str, backend_context: Any) -> None:
    constants: dict[str, Any] = {"w": CONSTANTS["w"]}
    nodes = [node("Conv", "x w", "a0")]
    for gate in range(3):
        value = f"a{gate}"
        for clip in range(5):
            low, high, made = (f"{name}{gate}{clip}" for name in ("low", "high", "clip"))
            constants |= {low: np.float32(-3 + 0.1 * clip), high: np.float32(3 - 0.1 * clip)}
            nodes.append(node("Clip", f"{value} {low} {high}", made))
            value = made
        nodes.append(node("Mul", f"a{gate} {value}", f"a{gate + 1}"))
    model = graph(nodes, {"x": [1, 3, 6, 6]}, constants, "a3")
    assert len(ops(pf.load(model))) > 1
    check_against_peer(model, {"x": random(1, 3, 6, 6)}, backend, backend_context)
