from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import check_against_peer, graph, node, ops, random

CONSTANTS: dict[str, Any] = {
    "scale": random(3, seed=1),
    "bias": random(3, seed=2),
    "mean": random(3, seed=3),
    "variance": np.abs(random(3, seed=4)) + 0.5,
    "channels": random(3, 1, 1, seed=5),
    "others": random(1, 3, 1, 1, seed=6),
    "number": np.float32(1.5),
    "rows": random(5, 1, seed=7),
}
NORM = "scale bias mean variance"


def picture(*nodes: onnx.NodeProto, outputs: str = "y") -> onnx.ModelProto:
    return graph([node("Abs", "x", "a"), *nodes], {"x": [2, 3, 5, 4]}, CONSTANTS, outputs)


MERGED = {
    "a normalization alone": picture(node("BatchNormalization", f"a {NORM}", "y", epsilon=0.01)),
    "times a constant": picture(node("BatchNormalization", f"a {NORM}", "b"), node("Mul", "b channels", "y")),
    "times and plus": picture(
        node("BatchNormalization", f"a {NORM}", "b"), node("Mul", "channels b", "c"), node("Add", "c others", "y")
    ),
    "times a number": picture(node("BatchNormalization", f"a {NORM}", "b"), node("Mul", "b number", "y")),
    "twice": picture(node("BatchNormalization", f"a {NORM}", "b"), node("BatchNormalization", f"b {NORM}", "y")),
    "then relu": picture(
        node("BatchNormalization", f"a {NORM}", "b"), node("Mul", "b channels", "c"), node("Relu", "c", "y")
    ),
}
LEFT = {
    "constants of rows": picture(node("BatchNormalization", f"a {NORM}", "b"), node("Mul", "b rows", "y")),
    "read twice": picture(
        node("BatchNormalization", f"a {NORM}", "b"), node("Mul", "b channels", "c"), node("Add", "b c", "y")
    ),
    "no normalization": picture(node("Mul", "a rows", "b"), node("Add", "b channels", "y")),
}


@pytest.mark.parametrize("name", MERGED)
def test_it_fires(name: str) -> None:
    found = ops(pf.load(MERGED[name]))
    assert len(found) == 2
    assert found[1].startswith("MultiplyAdd")


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    assert len(ops(pf.load(LEFT[name]))) > 2


@pytest.mark.parametrize("name", [*MERGED, *LEFT])
def test_the_numbers_stay(name: str, backend: str, backend_context: Any) -> None:
    check_against_peer((MERGED | LEFT)[name], {"x": random(2, 3, 5, 4)}, backend, backend_context)
