from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import check_against_peer, graph, node, ops, prepared, random

CONSTANTS: dict[str, Any] = {
    "w": random(4, 4, 3, 3, seed=1),
    "b": random(4, seed=2),
    "v": random(4, 4, 1, 1, seed=3),
    "deep": random(4, 1, 3, 3, seed=4),
    "wide": random(70, 4, 1, 1, seed=5),
    "behind": np.array([0, 0, 0, 0, 0, 66, 0, 0]),
    "before": np.array([0, 66, 0, 0, 0, 0, 0, 0]),
    "one": np.float32(1),
}
PADS = {"pads": [1, 1, 1, 1]}
SHAPE = {"x": [2, 4, 7, 5]}


def residual(*nodes: onnx.NodeProto, outputs: str = "y") -> onnx.ModelProto:
    return graph([node("Conv", "x v", "a"), *nodes], SHAPE, CONSTANTS, outputs)


FUSED = {
    "other first": residual(node("Conv", "a w b", "c", **PADS), node("Add", "a c", "y")),
    "other last": residual(node("Conv", "a w b", "c", **PADS), node("Add", "c a", "y")),
    "then relu": residual(node("Conv", "a w", "c", **PADS), node("Add", "a c", "d"), node("Relu", "d", "y")),
    "then sigmoid": residual(node("Conv", "a w", "c", **PADS), node("Add", "a c", "d"), node("Sigmoid", "d", "y")),
    "of two convolutions": residual(
        node("Conv", "a w", "c", **PADS),
        node("Tanh", "a", "t"),
        node("Conv", "t v", "d"),
        node("Add", "c d", "e"),
        node("Relu", "e", "y"),
    ),
}
NARROW = {
    "zeros behind": residual(node("Conv", "x wide", "c"), node("Pad", "a behind", "d"), node("Add", "c d", "y")),
    "zeros behind, first": residual(
        node("Conv", "x wide", "c"), node("Pad", "a behind", "d"), node("Add", "d c", "e"), node("Relu", "e", "y")
    ),
}
WIDE = {
    "zeros before": residual(node("Conv", "x wide", "c"), node("Pad", "a before", "d"), node("Add", "c d", "y")),
    "ones behind": residual(node("Conv", "x wide", "c"), node("Pad", "a behind one", "d"), node("Add", "c d", "y")),
    "zeros that are read twice": residual(
        node("Conv", "x wide", "c"), node("Pad", "a behind", "d"), node("Add", "c d", "e"), node("Mul", "d e", "y")
    ),
}
LEFT = {
    "an activation before the sum": residual(
        node("Conv", "a w", "c", **PADS), node("Relu", "c", "d"), node("Add", "a d", "y")
    ),
    "a result that is read twice": residual(
        node("Conv", "a w", "c", **PADS), node("Add", "a c", "d"), node("Mul", "c d", "y")
    ),
    "a result that is an output": residual(node("Conv", "a w", "c", **PADS), node("Add", "a c", "y"), outputs="c y"),
    "a depthwise one": residual(node("Conv", "a deep", "c", group=4, **PADS), node("Add", "a c", "y")),
    "an addend of another shape": residual(
        node("Conv", "a w", "c", **PADS), node("GlobalAveragePool", "a", "d"), node("Add", "c d", "y")
    ),
    "itself": residual(node("Conv", "a w", "c", **PADS), node("Add", "c c", "y")),
}


@pytest.mark.parametrize("name", FUSED)
def test_it_fires(name: str) -> None:
    model = prepared(FUSED[name])
    assert not any(op.startswith("Add") for op in ops(model))
    assert any(len(layer.inputs) == 4 for layer in model.layers)


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    model = prepared(LEFT[name])
    assert any(op.startswith("Add") for op in ops(model))


@pytest.mark.parametrize("name", [*NARROW, *WIDE])
def test_channels_of_zeros_are_not_made(name: str) -> None:
    assert ("Pad" in ops(prepared((NARROW | WIDE)[name]))) == (name in WIDE)


@pytest.mark.parametrize("name", [*FUSED, *NARROW, *WIDE, *LEFT])
def test_the_numbers_stay(name: str) -> None:
    check_against_peer((FUSED | NARROW | WIDE | LEFT)[name], {"x": random(2, 4, 7, 5)})


@pytest.mark.parametrize("sizes", [(1, 1), (9, 8), (7, 6)], ids=str)
def test_an_addend_of_unknown_dims_is_checked(sizes: tuple[int, int]) -> None:
    """Without the check, the convolution would read beyond the addend."""
    nodes = [node("Conv", "x w", "c"), node("Conv", "z v", "d"), node("Add", "c d", "e"), node("Relu", "e", "y")]
    loaded = pf.load(graph(nodes, {"x": ["n", 4, None, None], "z": ["n", 4, None, None]}, CONSTANTS))
    given = {"x": random(1, 4, 9, 8), "z": random(1, 4, *sizes)}
    if sizes == (7, 6):
        with pf.Worker(loaded) as worker:
            first, second = (worker.schedule(given).peek_output().download_to_array() for _ in range(2))
            np.testing.assert_array_equal(first, second)
        return
    with pytest.raises(pf.InferenceError, match=r"\(1, 4, 7, 6\)"):
        pf.run(loaded, given)
