from __future__ import annotations

from typing import Any

import numpy as np

from passes.graphs import apply, check_numbers_stay, graph, node, random

FLATTENING = graph(
    [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "b"),
        node("Mul", "b two", "b2"),
        node("Unsqueeze", "b2 zero1", "b3"),
        node("Concat", "b3 rest", "target", axis=0),
        node("Relu", "x", "r"),
        node("Reshape", "r target", "y"),
    ],
    {"x": ["n", 4, 3]},
    {"zero": np.array(0), "zero1": np.array([0]), "two": np.array(2), "rest": np.array([-1])},
)


def on_host(model: Any) -> set[str]:
    return {layer.name for layer in model.layers if layer.on_host}


def test_layers_that_lead_only_to_shapes_are_placed() -> None:
    model, changed = apply("place_shape_arithmetic", FLATTENING)
    assert on_host(model) == {"s", "b", "b2", "b3", "target"}
    assert changed == 5


def test_layers_that_lead_to_values_are_not_placed() -> None:
    nodes = [node("Shape", "x", "s"), node("Cast", "s", "f", to=1), node("Mul", "x f", "y")]
    model, changed = apply("place_shape_arithmetic", graph(nodes, {"x": ["n"]}))
    assert changed == 0 and not on_host(model)


def test_a_layer_whose_shape_alone_is_read_is_not_placed() -> None:
    """Its values would have to come from the GPU."""
    nodes = [node("Exp", "x", "e"), node("Shape", "e", "s"), node("Expand", "one s", "y")]
    model, _ = apply("place_shape_arithmetic", graph(nodes, {"x": ["n"]}, {"one": np.float32(1)}))
    assert on_host(model) == {"s"}


def test_an_output_of_the_model_is_not_placed() -> None:
    nodes = [node("Shape", "x", "s"), node("Expand", "one s", "y")]
    model, _ = apply("place_shape_arithmetic", graph(nodes, {"x": ["n"]}, {"one": np.float32(1)}, outputs="y s"))
    assert not on_host(model)


def test_numbers_stay(backend: str, backend_context: Any) -> None:
    for count in (1, 3):
        check_numbers_stay(FLATTENING, {"x": random(count, 4, 3)}, backend, backend_context)
