"""Rotary embeddings that are spelled out are recognised: both kinds of pairs, both spellings, all orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import apply, check_against_peer, check_numbers_stay, graph, node, ops, random

CONSTANTS: dict[str, Any] = {
    "zero": np.array([0]),
    "one": np.array([1]),
    "two": np.array([2]),
    "last": np.array([-1]),
    "end": np.array([2**62]),
    "pairs": np.array([0, 0, 0, 4, 2]),
    "flat": np.array([0, 0, 0, 8]),
    "uneven": np.array([5, 3]),
}
HALVES = [node("Split", "x", "a b", axis=-1, num_outputs=2)]
NEIGHBOURS = [node("Slice", f"x {first} end last two", name) for first, name in (("zero", "a"), ("one", "b"))]

UNBOUND = [
    node("Reshape", "x pairs", "x2"),
    node("Split", "x2", "a1 b1", axis=-1, num_outputs=2),
    *(node("Squeeze", f"{name}1 last", name) for name in "ab"),
]


def joined(first: str, second: str, made: str, interleaved: bool) -> list[onnx.NodeProto]:
    if not interleaved:
        return [node("Concat", f"{first} {second}", made, axis=-1)]
    return [
        node("Unsqueeze", f"{first} last", f"{made}1"),
        node("Unsqueeze", f"{second} last", f"{made}2"),
        node("Concat", f"{made}1 {made}2", f"{made}3", axis=-1),
        node("Reshape", f"{made}3 flat", made),
    ]


def summed(interleaved: bool) -> list[onnx.NodeProto]:
    """x * cos + turned(x) * sin"""
    cut = NEIGHBOURS if interleaved else HALVES
    turn = [node("Neg", "b", "minus"), *joined("minus", "a", "turned", interleaved)]
    return [*cut, *turn, node("Mul", "x cos", "one_way"), node("Mul", "turned sin", "other"), node("Add", SUM, "y")]


SUM = "one_way other"


def spread(interleaved: bool) -> list[onnx.NodeProto]:
    """a * cos - b * sin, and b * cos + a * sin"""
    products = [("a cos", "ac"), ("b sin", "bs"), ("cos b", "bc"), ("sin a", "as")]
    return [
        *(NEIGHBOURS if interleaved else HALVES),
        *(node("Mul", factors, name) for factors, name in products),
        node("Sub", "ac bs", "first"),
        node("Add", "as bc", "second"),
        *joined("first", "second", "y", interleaved),
    ]


def model(nodes: list[onnx.NodeProto], width: int, **shapes: Any) -> onnx.ModelProto:
    given = {"x": ["batch", 3, "n", 8], "cos": ["n", width], "sin": [1, 1, "n", width], **shapes}
    used = {name for one in nodes for name in one.input}
    return graph(nodes, given, {name: value for name, value in CONSTANTS.items() if name in used})


SPELLINGS = [
    *((summed(interleaved), 8, interleaved) for interleaved in (False, True)),
    *((spread(interleaved), 4, interleaved) for interleaved in (False, True)),
    ([*UNBOUND, *summed(True)[2:]], 8, True),
    ([*UNBOUND, *spread(True)[2:]], 4, True),
]


@pytest.mark.parametrize(("nodes", "width", "interleaved"), SPELLINGS, ids=range(len(SPELLINGS)))
def test_a_rotation_becomes_one_layer(
    nodes: list[onnx.NodeProto], width: int, interleaved: bool, backend: str, backend_context: Any
) -> None:
    made = model(nodes, width)
    (layer,) = pf.load(made).layers
    assert (layer.op, layer.input_names) == ("RotatePairs", ["x", "cos", "sin"])
    assert layer.attributes["interleaved"] == interleaved
    fed = {"x": random(2, 3, 5, 8), "cos": random(5, width, seed=1), "sin": random(1, 1, 5, width, seed=2)}
    check_numbers_stay(made, fed, backend, backend_context)
    check_against_peer(made, fed)


def swapped(nodes: list[onnx.NodeProto], output: str) -> list[onnx.NodeProto]:
    """The nodes, with the first two inputs of one exchanged."""
    made = [onnx.NodeProto.FromString(one.SerializeToString()) for one in nodes]
    for one in made:
        if one.output[0] == output:
            one.input[0], one.input[1] = one.input[1], one.input[0]
    return made


@pytest.mark.parametrize("output", ["one_way", "other", "y"])
def test_the_order_of_sums_and_products_does_not_matter(output: str) -> None:
    assert ops(pf.load(model(swapped(summed(False), output), 8))) == ["RotatePairs"]


@pytest.mark.parametrize(
    ("nodes", "width", "shapes"),
    [
        (swapped(summed(False), "turned"), 8, {}),  # a before -b
        (swapped(spread(False), "first"), 4, {}),  # b * sin - a * cos
        (swapped(spread(True), "y3"), 4, {}),  # the second numbers first
        ([node("Split", "x uneven", "a b", axis=-1), *summed(False)[1:]], 8, {}),
        ([*NEIGHBOURS, node("Neg", "b", "minus"), *joined("minus", "a", "turned", False), *summed(False)[3:]], 8, {}),
        (summed(False), 1, {}),  # one angle for all numbers
        (summed(False), 8, {"x": [1, 3, 1, 8]}),  # x is repeated
        (summed(False), 8, {"x": ["batch", 3, None, 8]}),  # and here it may be
        (summed(False), 8, {"cos": [2, 1, 1, "n", 8]}),
    ],
    ids=range(9),
)
def test_what_only_looks_like_a_rotation_stays(nodes: list[onnx.NodeProto], width: int, shapes: Any) -> None:
    optimized, changed = apply("recognise_rotations", model(nodes, width, **shapes))
    assert (changed, "RotatePairs" in ops(optimized)) == (0, False)


def test_values_that_others_read_stay() -> None:
    nodes = [*summed(False), node("Relu", "turned", "z")]
    made = graph(nodes, {"x": [1, 3, 5, 8], "cos": [5, 8], "sin": [5, 8]}, {}, outputs="y z")
    assert sorted(ops(pf.load(made))) == ["Concat", "Neg", "Relu", "RotatePairs", "Split"]
    fed = {"x": random(1, 3, 5, 8), "cos": random(5, 8, seed=1), "sin": random(5, 8, seed=2)}
    check_against_peer(made, fed)
