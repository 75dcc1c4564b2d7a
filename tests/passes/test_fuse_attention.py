from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import check_against_peer, graph, node, ops, prepared, random

FED = {"q": (2, 3, 5, 8), "k": (2, 3, 7, 8), "v": (2, 3, 7, 4), "m": (5, 7), "n": (2, 1, 1, 7), "x": (6, 2, 72)}
CONSTANTS: dict[str, Any] = {
    "root": np.float32(0.3),
    "two": np.array([2.0], np.float32),
    "zero": np.float32(0),
    "low": np.float32(-1e4),
    "factors": random(8, seed=9),
    "nothing": np.zeros((5, 7), np.float32),
    "chosen": np.random.default_rng(1).random((5, 7)) < 0.8,
    "all": np.zeros((5, 1), bool),
    "some": np.arange(5)[:, None] > 2,
    "cut": np.array([0, 0, 3, 24], np.int64),
    "heads": np.array([0, 6, 8], np.int64),
    "four": np.array([2, 3, 6, 8], np.int64),
    "joined": np.array([0, -1], np.int64),
    "first": np.int64(0),
    "second": np.int64(1),
    "third": np.int64(-1),
    "parts": np.array([24, 24, 24], np.int64),
    "groups": np.array([2, 3, 4, 7, 8], np.int64),
    "twelve": np.array([2, 12, 7, 8], np.int64),
    "axis": np.array([2], np.int64),
}
COLUMNS = node("Transpose", "k", "c", perm=[0, 1, 3, 2])


def between(*nodes: onnx.NodeProto, outputs: str = "y", **attributes: Any) -> onnx.ModelProto:
    """The layers between the scores s and t."""
    whole = [COLUMNS, node("MatMul", "q c", "s"), *nodes, node("Softmax", "t", "w", **attributes)]
    return graph([*whole, node("MatMul", "w v", "y")], {k: FED[k] for k in "qkvmn"}, CONSTANTS, outputs)


PACKED = [  # (tokens, batch, 3 * heads * size) as PyTorch's layer cuts it
    node("Reshape", "x cut", "a"),
    node("Transpose", "a", "b", perm=[2, 0, 1, 3]),
    *(node("Gather", f"b {at}", f"{at}0") for at in ("first", "second", "third")),
    *(node("Reshape", f"{at}0 heads", f"{at}1") for at in ("first", "second", "third")),
    *(node("Transpose", f"{at}1", f"{at}2", perm=[1, 0, 2]) for at in ("first", "second", "third")),
    *(node("Reshape", f"{at}2 four", f"{at}3") for at in ("first", "second", "third")),
    node("Transpose", "second3", "columns", perm=[0, 1, 3, 2]),
    node("Mul", "first3 root", "left"),
    node("Mul", "columns root", "right"),
    node("MatMul", "left right", "s"),
    node("Softmax", "s", "w"),
    node("MatMul", "w third3", "r"),
    node("Transpose", "r", "t", perm=[2, 0, 1, 3]),
    node("Reshape", "t joined", "y"),
]
GROUPED = [
    node("Unsqueeze", "k axis", "k1"),
    node("Expand", "k1 groups", "k2"),
    node("Reshape", "k2 twelve", "k3"),
    node("Transpose", "k3", "k4", perm=[0, 1, 3, 2]),
    node("MatMul", "q k4", "s"),
    node("Softmax", "s", "w"),
    node("MatMul", "w k3", "y"),
]
FUSED = {
    "a factor": between(node("Mul", "s root", "t")),
    "a quotient": between(node("Div", "s two", "t")),
    "a mask": between(node("Div", "s two", "d"), node("Add", "d m", "t")),
    "a mask first": between(node("Add", "n s", "t")),
    "two masks": between(node("Add", "n s", "d"), node("Add", "d m", "t")),
    "an empty mask": between(node("Add", "s nothing", "t")),
    "a choice": between(node("Where", "chosen s low", "t")),
    "another choice": between(node("Add", "s m", "d"), node("Where", "chosen low d", "t")),
    "a cap": between(node("Div", "s two", "a"), node("Tanh", "a", "b"), node("Mul", "b two", "t"), axis=3),
    "heads in one": graph(PACKED, {"x": FED["x"]}, CONSTANTS),
    "heads in one, any length": graph(
        PACKED[:-1], {"x": ["t", 2, 72]}, CONSTANTS | {"four": np.int64([2, 3, -1, 8])}, "t"
    ),
    "split": graph(
        [
            node("Split", "x parts", "a b c", axis=2),
            node("Transpose", "b", "d", perm=[0, 2, 1]),
            node("MatMul", "a d", "s"),
            node("Softmax", "s", "w"),
            node("MatMul", "w c", "y"),
        ],
        {"x": FED["x"]},
        CONSTANTS,
    ),
    "grouped heads": graph(GROUPED, {"q": (2, 12, 5, 8), "k": FED["k"]}, CONSTANTS),
}
LEFT = {
    "weights that are read": between(node("Mul", "s root", "t"), outputs="y w"),
    "scores that are read": between(node("Relu", "s", "t"), outputs="y s"),
    "scores that something else is done to": between(node("Sigmoid", "s", "t")),
    "another axis": between(node("Mul", "s root", "t"), axis=2),
}


def fed(model: onnx.ModelProto) -> dict[str, Any]:
    shapes = {value.name: [d.dim_value or 6 for d in value.type.tensor_type.shape.dim] for value in model.graph.input}
    return {name: random(*shape, seed=index) for index, (name, shape) in enumerate(shapes.items())}


@pytest.mark.parametrize("name", FUSED)
def test_it_fires(name: str) -> None:
    made = ops(prepared(FUSED[name]))
    assert set(made) <= {"DotProductAttention", "Reshape", "Add"}
    assert made.count("DotProductAttention") == 1
    assert made.count("Add") == (name == "two masks")


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    assert "DotProductAttention" not in ops(prepared(LEFT[name]))


@pytest.mark.parametrize("name", [*FUSED, *LEFT])
def test_numbers_stay(name: str) -> None:
    model = {**FUSED, **LEFT}[name]
    check_against_peer(model, fed(model))


@pytest.mark.parametrize("mask", ["all", "some"])
def test_dropped_rows(mask: str) -> None:
    nodes = [COLUMNS, node("MatMul", "q c", "s"), node("Softmax", "s", "w"), node("Where", f"{mask} zero w", "z")]
    model = graph([*nodes, node("MatMul", "z v", "y")], {k: FED[k] for k in "qkv"}, CONSTANTS)
    made = prepared(model)
    assert ops(made) == ["DotProductAttention"]
    assert len(made.layers[0].inputs) == (3 if mask == "all" else 6)
    check_against_peer(model, fed(model))


def test_a_mask_with_more_dims_than_the_scores_is_left() -> None:
    nodes = [node("MatMul", "q k", "s"), node("Add", "s m", "t"), node("Softmax", "t", "w"), node("MatMul", "w v", "y")]
    model = graph(nodes, {"q": (5, 8), "k": (8, 7), "v": (7, 4), "m": (3, 5, 7)})
    assert "DotProductAttention" not in ops(prepared(model))
    check_against_peer(model, fed(model))


def test_a_mask_may_repeat_the_scores() -> None:
    nodes = [node("MatMul", "q k", "s"), node("Add", "s m", "t"), node("Softmax", "t", "w"), node("MatMul", "w v", "y")]
    model = graph(nodes, {"q": (1, 1, 8), "k": (1, 8, 7), "v": (1, 7, 4), "m": (3, 5, 7)})
    assert ops(prepared(model)) == ["DotProductAttention"]
    check_against_peer(model, fed(model))


def test_products_of_a_factor_for_each_number_are_no_scale() -> None:
    nodes = [node("Mul", "q factors", "p"), COLUMNS, node("MatMul", "p c", "s"), node("Softmax", "s", "w")]
    model = graph([*nodes, node("MatMul", "w v", "y")], {k: FED[k] for k in "qkv"}, CONSTANTS)
    assert ops(prepared(model)) == ["Mul", "DotProductAttention"]
    check_against_peer(model, fed(model))


def repeated(name: str, groups: str) -> list[onnx.NodeProto]:
    """The heads of a value, repeated for groups of queries."""
    made = f"{name}1", f"{name}2", f"{name}3"
    whole = "twelve" if name == "k" else "twelve_values"
    return [
        node("Unsqueeze", f"{name} axis", made[0]),
        node("Expand", f"{made[0]} {groups}", made[1]),
        node("Reshape", f"{made[1]} {whole}", made[2]),
    ]


@pytest.mark.parametrize("mask", [(5, 7), (2, 1, 1, 7), (12, 5, 7), (2, 12, 5, 1)])
def test_repeated_heads_are_not_copied(backend: str, mask: tuple[int, ...], gl_context: Any) -> None:
    nodes = [
        *(*repeated("k", "groups"), *repeated("v", "groups_of_values")),
        node("Transpose", "k3", "k4", perm=[0, 1, 3, 2]),
        *(node("MatMul", "q k4", "s"), node("Add", "s m", "t"), node("Softmax", "t", "w"), node("MatMul", "w v3", "z")),
        node("Transpose", "z", "y", perm=[0, 2, 1, 3]),
    ]
    shapes = {"q": (2, 12, 5, 8), "k": FED["k"], "v": FED["v"], "m": mask}
    sizes = {"twelve_values": np.int64([2, 12, 7, 4]), "groups_of_values": np.int64([2, 3, 4, 7, 4])}
    model = graph(nodes, shapes, CONSTANTS | sizes)
    assert ops(prepared(model)) == ["DotProductAttention"]
    check_against_peer(model, fed(model), backend, gl_context)


def test_heads_that_are_repeated_otherwise_are_left() -> None:
    """Keys in three groups of four, and values in four groups of three."""
    nodes = [
        *(*repeated("k", "groups"), *repeated("v", "others")),
        node("Transpose", "k3", "k4", perm=[0, 1, 3, 2]),
        *(node("MatMul", "q k4", "s"), node("Softmax", "s", "w"), node("MatMul", "w v3", "y")),
    ]
    sizes = {"twelve_values": np.int64([2, 12, 7, 4]), "others": np.int64([2, 4, 3, 7, 4])}
    model = graph(nodes, {"q": (2, 12, 5, 8), "k": FED["k"], "v": (2, 4, 7, 4)}, CONSTANTS | sizes)
    assert "DotProductAttention" not in ops(prepared(model))
    check_against_peer(model, fed(model))


def test_new_shapes_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from perframe.backends.cpu.compile import jit

    nodes = [COLUMNS, node("MatMul", "q c", "s"), node("Softmax", "s", "w"), node("MatMul", "w v", "y")]
    model = graph(nodes, {"q": (1, 2, "n", 8), "k": (1, 2, "m", 8), "v": (1, 2, "m", 4)})
    with pf.Worker(pf.load(model)) as worker:
        for index, (n, m) in enumerate(((40, 7), (1, 300), (3, 40), (500, 2))):
            given = {"q": random(1, 2, n, 8), "k": random(1, 2, m, 8), "v": random(1, 2, m, 4)}
            before = len(jit.compiled)
            assert worker.schedule(given).peek_output().download_to_array().shape == (1, 2, n, 4)
            assert not index or len(jit.compiled) == before
