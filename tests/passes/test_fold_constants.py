from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import apply, check_numbers_stay, graph, node, ops, random

CONSTANTS = {"a": random(3, seed=1), "b": random(3, seed=2)}
FOLDABLE = graph(
    [node("Add", "a b", "c"), node("Transpose", "c", "d"), node("Mul", "x d", "y")], {"x": [2, 3]}, CONSTANTS
)


def test_layers_of_constants_are_computed() -> None:
    model, changed = apply("fold_constants", FOLDABLE)
    assert (changed, ops(model)) == (2, ["Mul"])
    np.testing.assert_array_equal(model.constants["d"], CONSTANTS["a"] + CONSTANTS["b"])


def test_layers_of_inputs_are_not() -> None:
    model, changed = apply("fold_constants", graph([node("Add", "x a", "y")], {"x": [3]}, CONSTANTS))
    assert (changed, ops(model)) == (0, ["Add"])


def test_known_arithmetic_of_an_unknown_shape_is_computed() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s two", "c"),
        node("Mul", "c two", "d"),
        node("Expand", "x s", "y"),
    ]
    nodes.append(node("Range", "zero d one", "z"))
    constants = {"zero": np.array(0), "one": np.array(1), "two": np.array(2)}
    model, changed = apply("fold_constants", graph(nodes, {"x": ["n", None, 3]}, constants, outputs="y z"))
    assert (changed, ops(model)) == (2, ["Shape", "Expand", "Range"])
    assert model.constants["d"] == 6


def test_outputs_of_the_model_are_not() -> None:
    _, changed = apply("fold_constants", graph([node("Add", "a b", "y")], {"x": [3]}, CONSTANTS))
    assert changed == 0


def test_what_would_make_the_model_huge_is_not_even_computed() -> None:
    nodes = [node("ConstantOfShape", "s", "zeros"), node("Add", "x zeros", "y")]
    _, changed = apply("fold_constants", graph(nodes, {"x": [1]}, {"s": np.array((5000, 5000))}))
    assert changed == 0


def test_what_no_machine_holds_is_refused_by_name() -> None:
    nodes = [node("ConstantOfShape", "s", "zeros"), node("Add", "x zeros", "y")]
    with pytest.raises(pf.InferenceError, match=r"'zeros' .*\(1000000, 10000000\) would take 40000000000000 bytes"):
        pf.load(graph(nodes, {"x": [1]}, {"s": np.array((10**6, 10**7))}))


def test_absent_inputs_count_as_known() -> None:
    nodes = [node("Clip", "a  top", "c"), node("Add", "x c", "y")]
    model, changed = apply("fold_constants", graph(nodes, {"x": [3]}, CONSTANTS | {"top": np.float32(0)}))
    assert changed == 1
    np.testing.assert_array_equal(model.constants["c"], np.minimum(CONSTANTS["a"], 0))


def test_numbers_stay(backend: str, backend_context: Any) -> None:
    check_numbers_stay(FOLDABLE, {"x": random(2, 3)}, backend, backend_context)
