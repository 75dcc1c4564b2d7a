from __future__ import annotations

from typing import Any

import onnx
import pytest

from passes.graphs import check_against_peer, graph, node, ops, prepared, random

CONSTANTS: dict[str, Any] = {
    "w": random(20, 3, 3, 3, seed=1),
    "s": random(20, 20, 1, 1, seed=2),
    "v": random(7, 20, 1, 1, seed=3),
    "many": random(70, 20, 1, 1, seed=4),
    "deep": random(20, 1, 3, 3, seed=5),
    "wide": random(7, 20, 3, 3, seed=6),
    "b": random(7, seed=7),
}


def block(*nodes: onnx.NodeProto, batch: int = 1, outputs: str = "y") -> onnx.ModelProto:
    head = [
        node("Conv", "x w", "a"),
        node("GlobalAveragePool", "a", "p"),
        node("Conv", "p s", "q"),
        node("Sigmoid", "q", "f"),
    ]
    return graph([*head, *nodes], {"x": [batch, 3, 9, 8]}, CONSTANTS, outputs)


FUSED = {
    "factors last": block(node("Mul", "a f", "m"), node("Conv", "m v b", "y")),
    "factors first": block(node("Mul", "f a", "m"), node("Conv", "m v", "y")),
    "then relu": block(node("Mul", "a f", "m"), node("Conv", "m v", "c"), node("Relu", "c", "y")),
    "every other pixel": block(node("Mul", "a f", "m"), node("Conv", "m v", "y", strides=[2, 2])),
    "and a sum": block(
        node("Conv", "a v", "r"), node("Mul", "a f", "m"), node("Conv", "m v b", "c"), node("Add", "c r", "y")
    ),
}
LEFT = {
    "two pictures": block(node("Mul", "a f", "m"), node("Conv", "m v", "y"), batch=2),
    "a larger window": block(node("Mul", "a f", "m"), node("Conv", "m wide", "y")),
    "a depthwise convolution": block(node("Mul", "a f", "m"), node("Conv", "m deep", "y", group=20)),
    "more outputs than pixels": block(node("Mul", "a f", "m"), node("Conv", "m many", "y")),
    "a product that is read twice": block(
        node("Mul", "a f", "m"), node("Conv", "m v", "c"), node("Conv", "m v b", "d"), node("Sub", "c d", "y")
    ),
    "a product that is an output": block(node("Mul", "a f", "m"), node("Conv", "m v", "y"), outputs="m y"),
}


def products(model: onnx.ModelProto) -> int:
    return sum(op.startswith("Mul") for op in ops(prepared(model)))


@pytest.mark.parametrize("name", FUSED)
def test_it_fires(name: str) -> None:
    assert products(FUSED[name]) == 0


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    assert products(LEFT[name]) == 1


@pytest.mark.parametrize("name", [*FUSED, *LEFT])
def test_the_numbers_stay(name: str) -> None:
    batch = 2 if name == "two pictures" else 1
    check_against_peer((FUSED | LEFT)[name], {"x": random(batch, 3, 9, 8)})
