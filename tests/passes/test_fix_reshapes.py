"""Reshapes to computed shapes that inference knows in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import apply, check_numbers_stay, graph, node, random

SHAPES = {"zero": np.array([0]), "one": np.array([1]), "four": np.array([4]), "rest": np.array([-1])}


def to_heads(dims: list[Any], parts: str) -> Any:
    """A Relu after a Reshape of x to `parts`, where b and s are x's first dims."""
    nodes = [
        node("Shape", "x", "all"),
        node("Gather", "all zero", "b"),
        node("Gather", "all one", "s"),
        node("Concat", parts, "target", axis=0),
        node("Reshape", "x target", "r"),
        node("Relu", "r", "y"),
    ]
    return graph(nodes, {"x": dims}, SHAPES)


HEADS = to_heads(["batch", "tokens", 12], "b s four rest")


def target(model: Any) -> list[int] | None:
    """The constant to which the model reshapes; None where it is no constant."""
    layer = next(layer for layer in model.layers if layer.op == "Reshape")
    found = layer.input(1).constant
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    ("dims", "parts", "wanted"),
    [
        (["batch", "tokens", 12], "b s four rest", [0, 0, 4, 3]),
        (["batch", "tokens", 12], "b rest", [0, -1]),
        (["batch", 5, 12], "b rest", [0, 60]),
        (["batch", "tokens", 12], "s b rest", None),  # two dims that are copied from other places
        ([None, None, 12], "b s rest", [0, 0, -1]),  # by where the numbers come from
        ([3, 5, 12], "b s rest", [3, 5, 12]),
    ],
    ids=str,
)
def test_a_shape_with_one_unknown_dim_is_a_constant(dims: list[Any], parts: str, wanted: Any) -> None:
    model, changed = apply("fix_reshapes", to_heads(dims, parts))
    assert (changed, target(model)) == (int(wanted is not None), wanted)


def test_a_constant_shape_stays() -> None:
    nodes = [node("Reshape", "x rest", "r"), node("Relu", "r", "y")]
    model, changed = apply("fix_reshapes", graph(nodes, {"x": ["n", 3]}, SHAPES))
    assert (changed, target(model)) == (0, [-1])


@pytest.mark.parametrize("wanted", [[3], [4, 4], [10**6], [-5], [4, -1], [-1, -1], [0, 6]], ids=str)
def test_a_shape_that_does_not_fit_is_an_error(wanted: list[int], backend: str, backend_context: Any) -> None:
    """Also one of a single number, which is known but for one dim."""
    nodes = [node("Reshape", "x s", "r"), node("Relu", "r", "y")]
    made = graph(nodes, {"x": [6], "s": [len(wanted)]})
    made.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    with pytest.raises(pf.InferenceError, match=r"'r' .*cannot be reshaped"):
        pf.run(made, {"x": random(6), "s": np.array(wanted)}, backend=backend, ctx=backend_context)


def test_a_number_of_another_inputs_shape_is_not_left_to_the_reshape() -> None:
    nodes = [node("Shape", "other", "all"), node("Reshape", "x all", "r"), node("Relu", "r", "y")]
    made = graph(nodes, {"x": ["n"], "other": ["m"]})
    assert apply("fix_reshapes", made)[1] == 0
    with pytest.raises(pf.InferenceError, match=r"'r' .*cannot be reshaped"):
        pf.run(made, {"x": random(6), "other": random(5)})


def test_numbers_stay(backend: str, backend_context: Any) -> None:
    for batch, tokens in ((1, 1), (2, 5), (0, 3)):
        check_numbers_stay(HEADS, {"x": random(batch, tokens, 12)}, backend, backend_context)
