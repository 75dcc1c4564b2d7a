"""A few random graphs, and the instruments that make, judge and shrink them. Long campaigns: `make fuzz-graphs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
import perframe.backends.cpu.backend as cpu
from fuzz.campaign import Settings
from fuzz.random_graphs import campaign, judge
from fuzz.random_graphs.graph import random_graph
from fuzz.random_graphs.minimise import minimised
from fuzz.random_graphs.plain import WITHOUT_KERNELS
from fuzz.random_graphs.reference import run_plainly
from perframe.passes import PASSES
from perframe.passes.recognise import recognise_functions

COUNT = 60


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "numpy:gpu_compute"])
def test_random_graphs_give_what_onnxruntime_gives(backend: str) -> None:
    """All passes, those of a GPU's preparation among them, at several sizes, optimised and not."""
    report = campaign(COUNT, Settings(32, backend, graphs=True), first=COUNT if ":" in backend else 0)
    assert report.counts == {"ok": COUNT}, report.failures


@pytest.mark.quick(cases=0)
def test_a_graph_is_its_number() -> None:
    for number in range(40):
        one, other = random_graph(5, number), random_graph(5, number)
        assert one.model.SerializeToString() == other.model.SerializeToString() and one.blocks == other.blocks
        assert all(
            np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f")
            for a, b in zip(one.feeds, other.feeds, strict=True)
            for name in a
        )


# what these passes look for is written by exporters alone; each has tests of its own
OF_EXPORTERS = {"recognise_appends", "recognise_rows", "recognise_tuples", "simplify_dft"}


@pytest.mark.slow
def test_graphs_are_of_all_kinds() -> None:
    """Several sizes, special values, bodies, defaults of inputs, and patterns for nearly all passes."""
    graphs = [random_graph(6, number) for number in range(300)]
    operators = {node.op_type for graph in graphs for node in graph.model.graph.node}
    assert len(operators) > 90 and {"If", "Loop", "LSTM", "Conv", "QuantizeLinear", "Resize", "TopK"} <= operators
    assert sum(len(graph.feeds) > 1 for graph in graphs) > 40 and sum(graph.special for graph in graphs) > 15
    assert any({v.name for v in g.model.graph.input} & {t.name for t in g.model.graph.initializer} for g in graphs)
    fired: set[str] = set()
    for graph in graphs:
        report = pf.load(graph.model).report
        fired.update(run.name for run in report.passes if run.changes)
    assert set(PASSES) - fired <= OF_EXPORTERS


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled."""
    monkeypatch.setattr(cpu, "reference", WITHOUT_KERNELS)


def _graph(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> agraph {text}')


def test_what_rounding_explains_is_no_difference_and_the_rest_is() -> None:
    """A difference of two nearly equal numbers may be anything near zero; a product may not."""
    model = _graph("(float[3] x, float[3] w) => (float[3] y, float[3] z) { a = Exp(x) z = Sub(a, w) y = Mul(x, w) }")
    feed = {"x": np.array([1, 2, 3], np.float32)}
    feed["w"] = np.exp(feed["x"])
    y, z = run_plainly(model, feed)
    assert not judge.difference(model, feed, ["y", "z"], [y, z + np.float32(1e-6)], [y, z])
    assert judge.difference(model, feed, ["y", "z"], [y, z + np.float32(1e-2)], [y, z]).startswith("z:")
    assert judge.difference(model, feed, ["y", "z"], [y * np.float32(1.001), z], [y, z]).startswith("y:")
    assert "shape" in judge.difference(model, feed, ["y", "z"], [y[:1], z], [y, z])
    assert "dtype" in judge.difference(model, feed, ["y", "z"], [y.astype(np.float64), z], [y, z])


def test_a_wrong_pass_is_found_and_the_graph_made_small(plainly: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that takes every function for a Sigmoid: what remains is the function alone, and the pass is named."""
    monkeypatch.setattr(recognise_functions, "run", _all_are_sigmoids)
    model = _graph(
        "(float[1,N,4] x, float[1,N,4] w) => (float[1,N,4] y, float[1,N,4] z)"
        "{ a = Mul(x, w) b = Softsign(a) c = Neg(b) y = Transpose<perm = [0, 1, 2]>(c) z = Abs(x) }"
    )
    rng = np.random.default_rng(0)
    feeds = [{name: rng.normal(size=(1, n, 4)).astype(np.float32) for name in "xw"} for n in (3, 5)]
    found = judge.judged(model, feeds, "cpu")
    assert found.kind == "wrong" and found.where == "optimised"
    small, fed = minimised(model, feeds, lambda m, f: judge.judged(m, f, "cpu", both=False).key == found.key, 200)
    assert [node.op_type for node in small.graph.node] == ["Softsign"] and len(fed) == 1
    assert next(iter(fed[0].values())).size == 1
    assert judge.culprit(small, fed, "cpu") == "recognise_functions"


def _all_are_sigmoids(model: pf.Model, evaluate: Any) -> int:
    changed = [layer for layer in model.layers if layer.op == "Softsign"]
    for layer in changed:
        layer.op = "Sigmoid"
    return len(changed)


def test_errors_without_a_type_and_refusals_are_told_apart(plainly: None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _graph("(float[2] x) => (float[2] y) { y = Relu(x) }")
    feeds = [{"x": np.ones(2, np.float32)}]
    assert judge.judged(model, feeds, "cpu").kind == "ok"
    for error, kind in ((pf.errors.InferenceError("no"), "refused"), (KeyError("no"), "untyped")):
        with monkeypatch.context() as patch:
            patch.setattr(pf, "load", lambda *_given, error=error, **_options: (_ for _ in ()).throw(error))
            assert judge.judged(model, feeds, "cpu").kind == kind


def test_what_fails_is_saved(plainly: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzz.random_graphs.graph import RandomGraph
    from fuzz.random_graphs.saving import reduced_and_saved

    monkeypatch.setattr(recognise_functions, "run", _all_are_sigmoids)
    model = _graph("(float[2] x) => (float[2] y) { a = Softsign(x) y = Neg(a) }")
    graph = RandomGraph("1-2", model, [{"x": np.array([1, 2], np.float32)}], ["unary"])
    for _ in range(2):
        text = reduced_and_saved(graph, judge.judged(model, graph.feeds, "cpu"), "cpu", None, tmp_path, "cpu")
        assert "recognise_functions" in text and "from 1-2" in text
    (made,) = tmp_path.iterdir()
    assert {file.name for file in made.iterdir()} == {"model.onnx", "inputs.npz", "README.txt", "count"}
    assert (made / "count").read_text() == "2"
