from __future__ import annotations

from typing import Any

import numpy as np

from passes.graphs import apply, check_numbers_stay, graph, node, ops, random

LONELY = graph(
    [node("Neg", "x", "a"), node("Relu", "x", "unread"), node("Exp", "unread", "unread2"), node("Add", "a c", "y")],
    {"x": [3]},
    {"c": np.ones(3, np.float32), "nobody": np.ones(3, np.float32)},
)


def test_unread_layers_are_removed() -> None:
    model, changed = apply("remove_unused", LONELY)
    assert changed == 2
    assert ops(model) == ["Neg", "Add"]
    assert list(model.constants) == ["c"]


def test_a_layer_stays_for_one_of_its_outputs() -> None:
    _, changed = apply("remove_unused", graph([node("Split", "x", "a y", num_outputs=2)], {"x": [4]}))
    assert changed == 0


def test_inputs_and_outputs_stay() -> None:
    model, changed = apply("remove_unused", graph([node("Relu", "x", "y")], {"x": [3], "z": [3]}))
    assert changed == 0
    assert [value.name for value in model.inputs] == ["x", "z"]


def test_numbers_stay(backend: str, backend_context: Any) -> None:
    check_numbers_stay(LONELY, {"x": random(3)}, backend, backend_context)
