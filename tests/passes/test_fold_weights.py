from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passes.graphs import apply, check_numbers_stay, graph, node, ops, prepared, random
from perframe.passes.clean import fold_constants

CONSTANTS = {"w": np.arange(12, dtype=np.int8).reshape(3, 4), "s": np.float32(0.5), "z": np.int8(2)}
READ = node("DequantizeLinear", "w s z", "v")
CONSTANT = graph([READ, node("Neg", "v", "n"), node("MatMul", "x n", "y")], {"x": [2, 3]}, CONSTANTS)
LEFT = {
    "data": graph(
        [node("DequantizeLinear", "w n z", "v"), node("MatMul", "x v", "y")], {"x": [2, 3], "n": []}, CONSTANTS
    ),
    "an output": graph([READ, node("MatMul", "x v", "y")], {"x": [2, 3]}, CONSTANTS, "v y"),
}


def test_it_fires() -> None:
    model, changed = apply("fold_weights", CONSTANT)
    assert changed == 2 and ops(model) == ["MatMul"]
    assert apply("fold_constants", CONSTANT)[1] == 0
    assert ops(prepared(CONSTANT)) == ["MatMul"]


def test_large_weights_are_folded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They grow by what their dtype does; other layers may not make much of little."""
    monkeypatch.setattr(fold_constants, "MAX_BYTES", 8)
    assert apply("fold_weights", CONSTANT)[1] == 2
    tiled = graph([node("Tile", "w often", "v")], {}, CONSTANTS | {"often": np.array([9, 9])}, "y")
    tiled.graph.node.append(node("Cast", "v", "y", to=1))
    assert apply("fold_weights", tiled)[1] == 0


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    assert apply("fold_weights", LEFT[name])[1] == 0


def test_the_numbers_stay(backend: str, backend_context: Any) -> None:
    check_numbers_stay(CONSTANT, {"x": random(2, 3)}, backend, backend_context)
