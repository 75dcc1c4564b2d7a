"""The graph under all passes: the makers and readers of values, kept up to date layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends import evaluator
from perframe.layers.base import Declaration
from perframe.passes import load_pass, match
from perframe.passes.match import Graph
from small import load, node


def chain(count: int, op: str) -> pf.Model:
    nodes = [node(op, f"{'x' if not i else f'v{i - 1}'}", f"v{i}") for i in range(count)]
    return load([*nodes, node("Softmax", f"v{count - 1}", "y")], {"x": ["n", 4]}, optimize=False)


def test_absorbing_keeps_producers_and_users() -> None:
    constants = {name: np.ones((4, 4), np.float32) for name in ("w", "u")}
    nodes = [node("MatMul", "x w", "a"), node("Add", "a u", "b"), node("Mul", "b u", "c"), node("Softmax", "c", "y")]
    model = load(nodes, {"x": [4, 4]}, constants=constants, optimize=False)
    graph = Graph(model)
    assert graph.specs
    product, sum_, times, _ = model.layers
    new = model.add_constant("w", np.zeros((4, 4), np.float32))
    product.inputs = ["x", new, "u"]
    graph.absorb(product, sum_)
    fresh = Graph(model)
    assert graph.producers == fresh.producers
    assert {name: {layer.name for layer in users} for name, users in graph.users.items()} == {
        name: {layer.name for layer in users} for name, users in fresh.users.items()
    }
    assert new == "w_1" and model.constants.keys() == {new, "u"}  # no layer reads the first weights any more
    assert "w" not in graph.specs and graph.specs[new].value is not None
    assert model.layers == [product, times, model.layers[-1]] and product.outputs == ["b"]


def test_removing_many_layers_looks_at_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Graph] = []
    refresh = match.Graph.refresh

    def count(self: Graph) -> None:
        made.append(self)
        refresh(self)

    monkeypatch.setattr(match.Graph, "refresh", count)
    model = chain(50, "Identity")
    assert load_pass("remove_noops")(model, evaluator()) == 50 and len(made) == 1
    assert [layer.op for layer in model.layers] == ["Softmax"] and model.layers[0].input_names == ["x"]


def test_the_same_is_not_inferred_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    infer = Declaration.outputs_for

    def count(self: Declaration, *given: Any) -> Any:
        calls.append(self.name)
        return infer(self, *given)

    model = chain(40, "Relu")
    monkeypatch.setattr(Declaration, "outputs_for", count)
    known = model.infer()
    assert calls.count("Relu") == 1 and str(known["v39"].shape) == "(n, 4)"
    assert model.infer().keys() == known.keys() and calls.count("Relu") == 1
    model.layers[3].op = "Neg"
    model.infer()
    assert calls.count("Neg") == 1 and calls.count("Relu") == 1
