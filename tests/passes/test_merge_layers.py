"""Duplicates, slices of one value, products in a row, branches with a known condition, and real Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf
from passes.graphs import apply, check_against_peer, check_numbers_stay, graph, node, ops, random

CONSTANTS: dict[str, Any] = {
    "two": np.float32(2),
    "also_two": np.float32(2),
    "minus": np.float32(-2),
    "at0": np.array([0], np.int64),
    "at2": np.array([2], np.int64),
    "at3": np.array([3], np.int64),
    "at5": np.array([5], np.int64),
    "end": np.array([2**62], np.int64),
    "axis1": np.array([1], np.int64),
    "w": random(6, 4, seed=1),
    "v": random(4, 5, seed=2),
    "t": random(5, 4, seed=3),
    "tall": random(40, 2, seed=6),
    "thin": random(2, 40, seed=7),
    "b": random(4, seed=4),
    "c": random(5, seed=5),
}


def of(*nodes: onnx.NodeProto, outputs: str = "y", x: Any = (3, 6)) -> onnx.ModelProto:
    used = {name for one in nodes for name in one.input}
    return graph(nodes, {"x": list(x)}, {name: value for name, value in CONSTANTS.items() if name in used}, outputs)


def test_equal_layers_become_one() -> None:
    model = of(node("Mul", "x two", "a"), node("Mul", "x also_two", "b2"), node("Sub", "a b2", "y"))
    optimized, changed = apply("merge_duplicates", model)
    assert (changed, ops(optimized)) == (2, ["Mul", "Sub"])  # a constant and a layer
    check_against_peer(model, {"x": random(3, 6)})


@pytest.mark.parametrize("place", [None, 3, 9000], ids=["equal", "another begin", "another end"])
def test_equal_large_constants_become_one(place: int | None) -> None:
    """Such as a table of words that the last product shares."""
    table = np.zeros((100, 100), np.float32)
    other = table.copy()
    if place is not None:
        other.flat[place] = 1
    nodes = [node("MatMul", "x table", "a"), node("MatMul", "a other", "y")]
    model = graph(nodes, {"x": [3, 100]}, {"table": table, "other": other})
    assert apply("merge_duplicates", model)[1] == (place is None)


def test_equal_chains_become_one() -> None:
    chains = [node("Mul", "x two", "a"), node("Exp", "a", "e"), node("Mul", "x two", "a2"), node("Exp", "a2", "e2")]
    model = of(*chains, node("Add", "e e2", "y"))
    assert ops(apply("merge_duplicates", model)[0]) == ["Mul", "Exp", "Add"]


@pytest.mark.parametrize(
    "model",
    [
        of(node("Mul", "x two", "a"), node("Mul", "x minus", "b2"), node("Sub", "a b2", "y")),
        of(node("Sub", "x two", "a"), node("Sub", "two x", "b2"), node("Sub", "a b2", "y")),
        of(node("Softmax", "x", "a", axis=0), node("Softmax", "x", "b2", axis=1), node("Sub", "a b2", "y")),
        of(node("Mul", "x two", "a"), node("Mul", "x two", "y"), outputs="y a"),
        of(node("RandomNormalLike", "x", "a"), node("RandomNormalLike", "x", "b2"), node("Sub", "a b2", "y")),
    ],
    ids=["other numbers", "another order", "other attributes", "two outputs", "random numbers"],
)
def test_different_layers_stay(model: onnx.ModelProto) -> None:
    assert apply("merge_duplicates", model)[1] == 0


PIECES = (
    of(
        node("Slice", "x at0 at2 axis1", "a"),
        node("Slice", "x at2 at5 axis1", "b2"),
        node("Slice", "x at5 end axis1", "c2"),
        node("Concat", "b2 c2 a", "y", axis=1),
    ),
    of(node("Slice", "x at3 end axis1", "a"), node("Slice", "x at0 at3 axis1", "b2"), node("Sub", "a b2", "y")),
)
NO_PIECES = {
    "a gap": of(
        node("Slice", "x at0 at2 axis1", "a"), node("Slice", "x at3 at5 axis1", "b2"), node("Sub", "a b2", "y")
    ),
    "an overlap": of(
        node("Slice", "x at0 at3 axis1", "a"),
        node("Slice", "x at2 end axis1", "b2"),
        node("Concat", "a b2", "y", axis=1),
    ),
    "one missing": of(node("Slice", "x at0 at3 axis1", "a"), node("Relu", "a", "y")),
    "an open size": of(
        node("Slice", "x at0 at3 axis1", "a"),
        node("Slice", "x at3 end axis1", "b2"),
        node("Sub", "a b2", "y"),
        x=(3, "columns"),
    ),
}


@pytest.mark.parametrize("which", range(len(PIECES)))
def test_slices_become_a_split(which: int, backend: str, backend_context: Any) -> None:
    optimized, changed = apply("merge_slices", PIECES[which])
    assert ops(optimized)[0] == "Split" and "Slice" not in ops(optimized) and changed
    check_against_peer(PIECES[which], {"x": random(3, 6)}, backend, backend_context)


@pytest.mark.parametrize("name", NO_PIECES)
def test_other_slices_stay(name: str) -> None:
    assert apply("merge_slices", NO_PIECES[name])[1] == 0
    check_against_peer(NO_PIECES[name], {"x": random(3, 6)})


LINEAR = {
    "two products": (of(node("MatMul", "x w", "a"), node("MatMul", "a v", "y")), 2),
    "with biases": (of(node("Gemm", "x w b", "a"), node("Gemm", "a v c", "y")), 3),
    "with a transposed one": (of(node("MatMul", "x w", "a"), node("Gemm", "a t c", "y", transB=1)), 3),
    "of batches": (of(node("MatMul", "x w", "a"), node("MatMul", "a v", "y"), x=(2, 3, 6)), 2),
}


@pytest.mark.parametrize("name", LINEAR)
def test_products_in_a_row_become_one(name: str, backend: str, backend_context: Any) -> None:
    model, inputs = LINEAR[name]
    optimized, changed = apply("merge_products", model)
    assert (changed, ops(optimized), len(optimized.layers[0].inputs)) == (1, ["MatMul"], inputs)
    x = random(*(optimized.inputs[0].shape or ()))
    check_against_peer(model, {"x": x}, backend, backend_context)


def test_products_stay_where_one_would_be_dearer_or_wrong() -> None:
    dear = of(node("MatMul", "x tall", "a"), node("MatMul", "a thin", "y"), x=(3, 40))
    for model in (
        dear,
        of(node("MatMul", "x w", "a"), node("MatMul", "a v", "y"), outputs="y a"),
        of(node("Gemm", "x w b", "a", alpha=2.0), node("Gemm", "a v c", "y")),
    ):
        assert apply("merge_products", model)[1] == 0
    (refusal,) = pf.load(dear).report.refusals["merge_products"]  # type: ignore[union-attr]
    assert "40 x 40 weights takes more multiplications than two by 2" in refusal.reason


def branch(condition: bool) -> onnx.ModelProto:
    def body(name: str, op: str) -> onnx.GraphProto:
        output = helper.make_tensor_value_info(f"{name} y", TensorProto.FLOAT, [3, 6])
        nodes = [helper.make_node(op, ["x", "two"], ["inside"]), helper.make_node("Relu", ["inside"], [f"{name} y"])]
        return helper.make_graph(nodes, name, [], [output])

    made = helper.make_node(
        "If", ["which"], ["chosen"], then_branch=body("then", "Mul"), else_branch=body("else", "Sub"), name="branch"
    )
    constants = {"which": np.array(condition), "two": np.float32(2)}
    return graph([made, node("Neg", "chosen", "y")], {"x": [3, 6]}, constants)


@pytest.mark.parametrize("condition", [True, False])
def test_a_decided_branch_becomes_its_layers(condition: bool, backend: str, backend_context: Any) -> None:
    model = branch(condition)
    optimized, changed = apply("inline_branches", model)
    assert (changed, ops(optimized)) == (1, ["Mul" if condition else "Sub", "Relu", "Identity", "Neg"])
    assert len(pf.load(model).layers) == 1
    check_against_peer(model, {"x": random(3, 6)}, backend, backend_context)


def test_branches_with_equal_names_keep_their_values_apart() -> None:
    one, other = branch(True), branch(False)
    second = [onnx.NodeProto.FromString(node.SerializeToString()) for node in other.graph.node]
    second[0].input[0], second[0].output[0], second[0].name = "other", "second", "another"
    second[1].input[0], second[1].output[0], second[1].name = "second", "z", "negated"
    nodes = [*one.graph.node, *second, node("Add", "y z", "sum")]
    constants = {"which": np.array(True), "other": np.array(False), "two": np.float32(2)}
    model = graph(nodes, {"x": [3, 6]}, constants, "sum")
    optimized, changed = apply("inline_branches", model)
    assert changed == 2 and ops(optimized).count("Relu") == 2
    check_against_peer(model, {"x": random(3, 6)})


def fourier(zeros: Any) -> onnx.ModelProto:
    constants = {"zeros": zeros, "last": np.array([-1], np.int64), "axis": np.array(1, np.int64)}
    nodes = [node("Unsqueeze", "x last", "u"), node("Concat", "u zeros", "c", axis=-1), node("DFT", "c  axis", "y")]
    return graph(nodes, {"x": [3, 6]}, constants)


def test_the_transform_of_real_numbers_reads_no_imaginary_parts(backend: str, backend_context: Any) -> None:
    model = fourier(np.zeros((3, 6, 1), np.float32))
    optimized, changed = apply("simplify_dft", model)
    assert changed == 1 and next(x for x in optimized.layers if x.op == "DFT").x.name == "u"
    check_numbers_stay(model, {"x": random(3, 6)}, backend, backend_context)
    assert apply("simplify_dft", fourier(random(3, 6, 1)))[1] == 0
