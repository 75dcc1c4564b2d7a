"""Functions, norms and shuffles that exporters spell out are recognised, whatever the spelling."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import apply, check_against_peer, graph, node, ops, random
from perframe.backends import evaluator
from perframe.ir import Layer
from perframe.ir.epilogue import Stage
from perframe.passes import load_pass
from perframe.passes.recognise.regions import is_plain_formula, regions

NUMBERS = {
    "zero": 0.0,
    "half": 0.5,
    "one": 1.0,
    "two": 2.0,
    "three": 3.0,
    "six": 6.0,
    "sixth": 1 / 6,
    "root2": math.sqrt(2),
    "over_root2": 1 / math.sqrt(2),
    "quick": 1.702,
    "nearly_quick": 1.6,
    "cubic": 0.044715,
    "root": math.sqrt(2 / math.pi),
    "eps": 1e-5,
}
CONSTANTS: dict[str, Any] = {name: np.float32(value) for name, value in NUMBERS.items()}


def test_a_function_within_an_epilogue() -> None:
    """It got there before the pass saw it; then it is the gate of a product."""
    gate = (Stage("Add", (), (None, 3.0)), Stage("Clip", (), (None, 0.0, 6.0)), Stage("Mul", (), (1 / 6, None)))
    relu = Stage("Relu", (), (None,))
    for inner, wanted in ((gate, "HardSwish"), (gate[:2], "Mul")):
        model = pf.load(graph([node("Conv", "x k", "y")], {"x": [1, 2, 5, 5]}, {"k": random(4, 2, 3, 3)}))
        model.layers[0].epilogue = (Stage("Mul", (), (None, inner)), relu)
        fed = {"x": random(1, 2, 5, 5, seed=1)}
        before = pf.run(model, fed)["y"]
        assert load_pass("recognise_functions")(model, evaluator()) == (wanted != "Mul")
        assert [stage.op for stage in model.layers[0].epilogue] == [wanted, "Relu"]
        np.testing.assert_allclose(pf.run(model, fed)["y"], before, 1e-5, 1e-6)


def of(*nodes: onnx.NodeProto, outputs: str = "y", x: Any = (3, 35)) -> onnx.ModelProto:
    used = {name for one in nodes for name in one.input}
    known = CONSTANTS | MORE
    return graph(nodes, {"x": list(x)}, {name: value for name, value in known.items() if name in used}, outputs)


MORE: dict[str, Any] = {
    "last": np.array([-1], np.int64),
    "first": np.array([0], np.int64),
    "scale": random(35, seed=1),
    "shift": random(35, seed=2),
    "rows": random(3, 1, seed=3),
}


def gelu(inner: list[onnx.NodeProto], outer: list[onnx.NodeProto]) -> onnx.ModelProto:
    return of(*inner, node("Erf", "e", "f"), node("Add", "f one", "g"), *outer)


SPELLED: dict[str, tuple[onnx.ModelProto, str, dict[str, Any]]] = {
    "gelu as PyTorch exports it": (
        gelu([node("Div", "x root2", "e")], [node("Mul", "x g", "h"), node("Mul", "h half", "y")]),
        "Gelu",
        {},
    ),
    "gelu with the half first": (
        gelu([node("Mul", "over_root2 x", "e")], [node("Mul", "half x", "h"), node("Mul", "g h", "y")]),
        "Gelu",
        {},
    ),
    "gelu by tanh": (
        of(
            node("Mul", "x x", "a"),
            node("Mul", "a x", "b"),
            node("Mul", "cubic b", "c"),
            node("Add", "x c", "d"),
            node("Mul", "d root", "e"),
            node("Tanh", "e", "f"),
            node("Add", "one f", "g"),
            node("Mul", "half x", "h"),
            node("Mul", "h g", "y"),
        ),
        "Gelu",
        {"approximate": "tanh"},
    ),
    "gelu by tanh and a power": (
        of(
            node("Pow", "x three", "b"),
            node("Mul", "b cubic", "c"),
            node("Add", "c x", "d"),
            node("Mul", "root d", "e"),
            node("Tanh", "e", "f"),
            node("Add", "f one", "g"),
            node("Mul", "x g", "h"),
            node("Mul", "h half", "y"),
        ),
        "Gelu",
        {"approximate": "tanh"},
    ),
    "quick gelu": (
        of(node("Mul", "x quick", "a"), node("Sigmoid", "a", "b"), node("Mul", "x b", "y")),
        "Swish",
        {"alpha": 1.702},
    ),
    "silu": (of(node("Sigmoid", "x", "b"), node("Mul", "b x", "y")), "Swish", {}),
    "hard swish": (
        of(
            node("Add", "x three", "a"),
            node("Clip", "a zero six", "b"),
            node("Mul", "x b", "c"),
            node("Div", "c six", "y"),
        ),
        "HardSwish",
        {},
    ),
    "mish": (of(node("Softplus", "x", "a"), node("Tanh", "a", "b"), node("Mul", "b x", "y")), "Mish", {}),
}
OTHERS = {
    "a factor that is not quite 1.702": of(
        node("Mul", "x nearly_quick", "a"), node("Sigmoid", "a", "b"), node("Mul", "x b", "y")
    ),
    "two values": of(node("Sigmoid", "x", "a"), node("Neg", "x", "n"), node("Relu", "n", "b"), node("Mul", "a b", "y")),
    "a value that is an output": of(node("Sigmoid", "x", "b"), node("Mul", "b x", "y"), outputs="y b"),
    "a gate of another shape": of(node("Sigmoid", "x", "b"), node("Mul", "b rows", "c"), node("Mul", "c x", "y")),
}


@pytest.mark.parametrize("name", SPELLED)
def test_a_function_is_recognised(name: str, backend: str, backend_context: Any) -> None:
    model, op, attributes = SPELLED[name]
    optimized, changed = apply("recognise_functions", model)
    (layer,) = optimized.layers
    assert (layer.op, layer.attributes, changed) == (op, attributes, len(model.graph.node) - 1)
    wide = random(3, 35) * 6
    wide[0, :4] = 0, 40, -40, 1e4
    check_against_peer(model, {"x": wide}, backend, backend_context)


@pytest.mark.parametrize("name", OTHERS)
def test_other_layers_stay(name: str) -> None:
    optimized, changed = apply("recognise_functions", OTHERS[name])
    assert changed == 0 and len(optimized.layers) == len(OTHERS[name].graph.node)
    check_against_peer(OTHERS[name], {"x": random(3, 35)})


def test_repeated_blocks_are_recognised() -> None:
    nodes = [node("Sigmoid", "x", "s0"), node("Mul", "x s0", "a0")]
    for block in (1, 2, 3):
        nodes += [node("Sigmoid", f"a{block - 1}", f"s{block}"), node("Mul", f"a{block - 1} s{block}", f"a{block}")]
    optimized, _ = apply("recognise_functions", of(*nodes, outputs="a3"))
    assert ops(optimized) == ["Swish"] * 4


MEAN = (node("ReduceMean", "x last", "m"), node("Sub", "x m", "c"))
SQUARES = (
    node("Mul", "c c", "q"),
    node("ReduceMean", "q last", "v"),
    node("Add", "v eps", "ve"),
    node("Sqrt", "ve", "s"),
)
NORMS: dict[str, tuple[onnx.ModelProto, str]] = {
    "a layer norm": (
        of(*MEAN, *SQUARES, node("Div", "c s", "n"), node("Mul", "n scale", "t"), node("Add", "t shift", "y")),
        "LayerNormalization",
    ),
    "a layer norm by a power": (
        of(
            *MEAN,
            node("Pow", "c two", "q"),
            *SQUARES[1:],
            node("Reciprocal", "s", "r"),
            node("Mul", "c r", "n"),
            node("Mul", "scale n", "y"),
        ),
        "LayerNormalization",
    ),
    "without a scale": (of(*MEAN, *SQUARES, node("Div", "c s", "y")), "LayerNormalization"),
    "the norm of T5 and Llama": (
        of(
            node("Pow", "x two", "q"),
            node("ReduceMean", "q last", "v"),
            node("Add", "v eps", "ve"),
            node("Sqrt", "ve", "s"),
            node("Div", "one s", "r"),
            node("Mul", "x r", "n"),
            node("Mul", "scale n", "y"),
        ),
        "RMSNormalization",
    ),
    "an open length": (of(*MEAN, *SQUARES, node("Div", "c s", "y"), x=("rows", "columns")), "LayerNormalization"),
}


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_is_recognised(name: str, backend: str, backend_context: Any) -> None:
    model, op = NORMS[name]
    optimized, _ = apply("recognise_norms", model)
    assert ops(optimized) == [op]
    assert optimized.layers[0].attributes["epsilon"] == pytest.approx(1e-5)
    x = random(3, 35) * np.array([[1e-3], [1], [100]], np.float32)
    check_against_peer(model, {"x": x}, backend, backend_context)


def test_other_means_stay() -> None:
    over_rows = (node("ReduceMean", "x first", "m"), node("Sub", "x m", "c"))
    rows = (node("Mul", "c c", "q"), node("ReduceMean", "q first", "v"), *SQUARES[2:])
    for model in (
        of(*over_rows, *rows, node("Div", "c s", "y")),
        of(*MEAN, *SQUARES, node("Div", "x s", "y")),
        of(*MEAN, *SQUARES, node("Div", "c s", "y"), outputs="y s"),
    ):
        assert apply("recognise_norms", model)[1] == 0


def shuffle(first: list[int], perm: list[int], last: list[int], x: Any) -> onnx.ModelProto:
    constants = {"first": np.array(first, np.int64), "last": np.array(last, np.int64)}
    nodes = [node("Reshape", "x first", "a"), node("Transpose", "a", "b", perm=perm), node("Reshape", "b last", "y")]
    return graph(nodes, {"x": list(x)}, constants)


SHUFFLES = {
    "pixel_shuffle": (
        shuffle([2, 3, 2, 2, 5, 7], [0, 1, 4, 2, 5, 3], [2, 3, 10, 14], (2, 12, 5, 7)),
        {"blocksize": 2, "mode": "CRD"},
    ),
    "of columns first": (
        shuffle([2, 3, 3, 2, 5, 7], [0, 3, 4, 1, 5, 2], [2, 2, 15, 21], (2, 18, 5, 7)),
        {"blocksize": 3, "mode": "DCR"},
    ),
    "pixel_unshuffle": (
        shuffle([2, 3, 5, 2, 7, 2], [0, 1, 3, 5, 2, 4], [2, 12, 5, 7], (2, 3, 10, 14)),
        {"blocksize": 2, "mode": "CRD"},
    ),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_a_shuffle_is_recognised(name: str, backend: str, backend_context: Any) -> None:
    model, attributes = SHUFFLES[name]
    optimized, changed = apply("recognise_shuffles", model)
    assert (changed, len(optimized.layers), optimized.layers[0].attributes) == (2, 1, attributes)
    check_against_peer(model, {"x": random(*(optimized.inputs[0].shape or ()))}, backend, backend_context)


@pytest.mark.parametrize(
    "model",
    [
        shuffle([2, 3, 2, 2, 5, 7], [0, 1, 4, 3, 5, 2], [2, 3, 10, 14], (2, 12, 5, 7)),
        shuffle([2, 3, 2, 2, 5, 7], [0, 1, 4, 2, 5, 3], [2, 3, 14, 10], (2, 12, 5, 7)),
        shuffle([2, 2, 2, 3, 7, 5], [0, 3, 4, 1, 5, 2], [2, 3, 14, 10], (2, 12, 5, 7)),
        shuffle([1, 6, 2, 2, 5, 7], [0, 1, 4, 2, 5, 3], [2, 3, 10, 14], (2, 12, 5, 7)),
    ],
    ids=["another order", "another shape", "rows and columns exchanged", "across the batch"],
)
def test_other_moves_stay(model: onnx.ModelProto) -> None:
    assert apply("recognise_shuffles", model)[1] == 0
    check_against_peer(model, {"x": random(2, 12, 5, 7)})


def test_a_recognised_function_joins_an_epilogue() -> None:
    weights = {"w": random(4, 3, 1, 1), "half": np.float32(0.5), "one": np.float32(1), "root2": CONSTANTS["root2"]}
    nodes = [
        node("Conv", "x w", "c"),
        node("Div", "c root2", "e"),
        node("Erf", "e", "f"),
        node("Add", "f one", "g"),
        node("Mul", "c g", "h"),
        node("Mul", "h half", "y"),
    ]
    assert ops(pf.load(graph(nodes, {"x": [1, 3, 5, 5]}, weights))) == ["Conv+Gelu"]


def test_a_layer_is_judged_once_for_all_regions() -> None:
    """Each of these layers is near the others, whose regions would ask for it again and again."""
    names = [*"abcdefghijklmnopqrsty"]
    nodes = [node("Neg", "x", "a"), *(node("Add", f"x {one}", other) for one, other in pairwise(names))]
    model = pf.load(graph(nodes, {"x": [2, 3]}), optimize=False)
    asked: list[str] = []

    def takes(layer: Layer) -> bool:
        asked.append(layer.name)
        return is_plain_formula(layer)

    found = list(regions(model, takes, fewest=2))
    assert found and len(asked) == len(set(asked)) == len(model.layers)
