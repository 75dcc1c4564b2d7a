"""Epsilons and clamps that guard a logarithm or a division are not lost when their neighbours become a function."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import apply, graph, node
from perframe.testing.cases import expected_by_onnxruntime

X = np.array([[-200, -100, -60, -30, -10, -5, -1, -1e-7, 0, 1e-7, 1, 5, 10, 17, 60, 100]], np.float32)
EPSILONS = (1.9e-6, 1e-6, 1e-7, 1e-12, 1e-20, 1e-30)


def guarded(*nodes: onnx.NodeProto, **constants: float) -> onnx.ModelProto:
    numbers = {"one": 1.0, **constants}
    read = {name for one in nodes for name in one.input}
    return graph(nodes, {"x": X.shape}, {name: np.float32(v) for name, v in numbers.items() if name in read})


def after(function: str, guard: onnx.NodeProto, then: str, epsilon: float) -> onnx.ModelProto:
    last = node("Log", "g", "y") if then == "log" else node("Div", "one g", "y")
    return guarded(node(function, "x", "f"), guard, last, eps=epsilon, most=1 - max(epsilon, 6e-8))


GUARDS = {
    "sum": node("Add", "f eps", "g"),
    "maximum": node("Max", "f eps", "g"),
    "clip": node("Clip", "f eps most", "g"),
    "lower bound": node("Clip", "f eps", "g"),
}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("then", ["log", "division"])
@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
@pytest.mark.parametrize("function", ["Sigmoid", "Softplus", "HardSigmoid"])
def test_a_guard_stays(function: str, guard: onnx.NodeProto, then: str, epsilon: float) -> None:
    optimized, removed = apply("recognise_functions", after(function, guard, then, epsilon))
    assert not removed
    assert [layer.op for layer in optimized.layers][:2] == [function, guard.op_type]


@pytest.mark.parametrize("epsilon", [1e-6, 1e-20])
@pytest.mark.parametrize("function", ["Sigmoid", "Softplus"])
def test_a_guarded_logarithm_stays_finite(function: str, epsilon: float, backend: str, backend_context: Any) -> None:
    x = X.astype(np.float64)
    exact = 1 / (1 + np.exp(-x)) if function == "Sigmoid" else np.log1p(np.exp(x))
    want = np.log(exact.astype(np.float32) + np.float32(epsilon))
    model = after(function, GUARDS["sum"], "log", epsilon)
    given = pf.run(model, {"x": X}, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_allclose(given, want, 1e-3, 1e-5)


def test_a_guard_of_what_lacks_to_one_stays() -> None:
    nodes = [node("Sigmoid", "x", "p"), node("Clip", "p eps most", "q"), node("Sub", "one q", "r")]
    model = guarded(*nodes, node("Log", "r", "y"), eps=1e-7, most=1 - 1e-6)
    (want,) = expected_by_onnxruntime(model, {"x": X})
    np.testing.assert_allclose(pf.run(model, {"x": X})["y"], want, 1e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_guard_within_a_spelling_stays(epsilon: float) -> None:
    nodes = [
        node("Neg", "x", "n"),
        node("Exp", "n", "e"),
        node("Add", "e one", "d"),
        node("Div", "one d", "s"),
        node("Add", "s eps", "g"),
    ]
    optimized, removed = apply("recognise_functions", guarded(*nodes, node("Log", "g", "y"), eps=epsilon))
    assert removed == 3  # the sigmoid without its guard
    assert [layer.op for layer in optimized.layers] == ["Sigmoid", "Add", "Log"]


@pytest.mark.parametrize("epsilon", [1e-12, 1e-20])
def test_a_second_guard_of_a_norm_stays(epsilon: float) -> None:
    """Small rows tell a clamp of the variance from the epsilon beside it."""
    axes: dict[str, Any] = {"axes": np.array([-1]), "eps": np.float32(1e-30), "least": np.float32(epsilon)}
    nodes = [
        node("ReduceMean", "x axes", "m"),
        node("Sub", "x m", "c"),
        node("Mul", "c c", "s"),
        node("ReduceMean", "s axes", "v"),
        node("Max", "v least", "w"),
        node("Add", "w eps", "e"),
        node("Sqrt", "e", "d"),
        node("Div", "c d", "y"),
    ]
    model = graph(nodes, {"x": (4, 8)}, axes)
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    x *= np.array([[1], [1e-5], [1e-8], [1e-11]], np.float32)
    (want,) = expected_by_onnxruntime(model, {"x": x})
    np.testing.assert_allclose(pf.run(model, {"x": x})["y"], want, 1e-3, 1e-7)
