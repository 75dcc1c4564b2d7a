from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import apply, check_against_peer, check_numbers_stay, graph, node, ops, random

CONSTANTS = {"a": random(3, seed=1), "b": random(3, seed=2)}
FOLDABLE = graph(
    [node("Add", "a b", "c"), node("Transpose", "c", "d"), node("Mul", "x d", "y")], {"x": [2, 3]}, CONSTANTS
)


def test_layers_of_constants_are_computed() -> None:
    model, changed = apply("fold_constants", FOLDABLE)
    assert (changed, ops(model)) == (2, ["Mul"])
    np.testing.assert_array_equal(model.constants["d"], CONSTANTS["a"] + CONSTANTS["b"])


def test_arrays_of_a_long_chain_need_not_fit_into_memory_together() -> None:
    names = ["a", *(f"v{index}" for index in range(40))]
    nodes = [node("Add", f"{x} a", y) for x, y in pairwise(names)]
    value = random(1 << 16)
    proto = graph([*nodes, node("Mul", f"x {names[-1]}", "y")], {"x": [1]}, {"a": value})
    tracemalloc.start()
    model, changed = apply("fold_constants", proto)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert changed == 40 and most < 10 * value.nbytes
    np.testing.assert_allclose(model.constants["v39"], 41 * value, rtol=1e-5)


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


def test_a_known_value_is_the_one_behind_the_epilogue(backend: str, backend_context: Any) -> None:
    """A layer of known values may have got an epilogue before what reads it is folded."""
    numbers = (np.arange(21).reshape(7, 3) * 5 - 50).astype(np.int8)
    nodes = [
        node("DequantizeLinear", "q s z", "d"),
        node("HardSwish", "d", "h"),
        node("Abs", "h", "a"),
        node("Add", "a half", "b"),
        node("Abs", "b", "c"),
        node("Expand", "c shape", "e"),
        node("Add", "x e", "y"),
    ]
    constants = {"q": numbers, "s": np.float32(0.0123), "z": np.int8(0), "half": np.float32(0.5)}
    constants["shape"] = np.array([2, 7, 3])
    model = graph(nodes, {"x": [2, 7, 3]}, constants, "y b")
    check_against_peer(model, {"x": random(2, 7, 3)}, backend, backend_context)
