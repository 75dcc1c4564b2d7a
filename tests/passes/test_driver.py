"""What surrounds the passes: errors that name them, the origins of layers, and models that nothing may fuse."""

from __future__ import annotations

import collections
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import perframe as pf
from passes.graphs import graph, node, random
from perframe.backends import evaluator
from perframe.command_line.cli import app
from perframe.errors import InferenceError, PassError
from perframe.ir import Layer, Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.passes import PREPARATIONS, optimize, preparations, prepare
from perframe.passes.clean import fold_constants, merge_moves, remove_noops
from perframe.passes.fuse.fuse_activation import MAX_STAGES
from small import specs

RUNNER = CliRunner()


def network() -> onnx.ModelProto:
    nodes = [
        node("Conv", "x w", "a"),
        node("BatchNormalization", "a s s s s", "b"),
        node("Relu", "b", "c"),
        node("Identity", "c", "d"),
        node("Neg", "k", "m"),
        node("Mul", "d m", "e"),
        node("Abs", "e", "f"),
        node("Softplus", "e", "g"),
        node("Tanh", "g", "t"),
        node("Mul", "e t", "y"),
    ]
    constants = {"w": random(4, 3, 1, 1), "s": np.abs(random(4)) + np.float32(1), "k": np.float32(2)}
    return graph(nodes, {"x": [1, 3, 5, 5]}, constants)


def load(nodes: Any, inputs: Any, constants: Any = None) -> pf.Model:
    return pf.load(graph(nodes, inputs, constants or {}))


def explained(proto: onnx.ModelProto) -> Any:
    model = pf.load(proto, optimize=False)
    return optimize(model, evaluator(), explain=True)


def test_each_layer_says_where_it_comes_from() -> None:
    report = explained(network())
    (conv,) = report.origins
    assert conv.layer == "a (Conv + Relu + Mul + Mish)" and conv.is_changed
    assert [source.split(" ")[0] for source in conv.sources] == ["a", "b", "c", "d", "e", "g", "t", "y"]
    assert report.gone == ("m (Neg)", "f (Abs)")  # a constant, and a value that nobody reads


def test_a_layer_that_no_pass_changed_is_itself() -> None:
    report = explained(graph([node("Relu", "x", "a"), node("Softmax", "a", "y")], {"x": [2, 3]}))
    assert [origin.sources for origin in report.origins] == [(origin.layer,) for origin in report.origins]
    assert not report.gone and not any(origin.is_changed for origin in report.origins)


def test_moves_keep_their_origins() -> None:
    """Two transpositions go, and the layer between them stays; a twin goes into the reader of its copy."""
    nodes = [node(*given, perm=[0, 2, 1]) for given in (("Transpose", "x", "a"), ("Transpose", "b", "y"))]
    report = explained(graph([nodes[0], node("Relu", "a", "b"), nodes[1]], {"x": [1, 2, 3]}))
    assert [str(origin) for origin in report.origins] == ["b (Relu) ← a (Transpose), b (Relu), y (Transpose)"]
    twins = [node("Softmax", "x", "a"), node("Softmax", "x", "b"), node("Add", "a b", "y")]
    report = explained(graph(twins, {"x": [1, 2, 3]}))
    assert [origin.sources for origin in report.origins] == [("a (Softmax)",), ("b (Softmax)", "y (Add)")]


def test_every_layer_of_a_file_is_somewhere(shared: Path) -> None:
    path = shared / "models" / "blaze_face_short_range.onnx"
    filed = pf.load(path, optimize=False)
    count = len(filed.layers)
    report = optimize(filed, evaluator(), explain=True)
    told = {source for origin in report.origins for source in origin.sources} | set(report.gone)
    assert len(told) == count and all(origin.sources for origin in report.origins)


@pytest.mark.slow
def test_the_command_tells_the_origins(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "m.onnx")
    shown = " ".join(RUNNER.invoke(app, ["optimize", str(tmp_path / "m.onnx"), "--explain"]).output.split())
    assert "a (Conv + Relu + Mul + Mish) ← a (Conv), b (BatchNormalization), c (Relu)" in shown and "f (Abs)" in shown


# --- errors ---


def _breaking(model: pf.Model, _evaluate: Any) -> int:
    """Let a layer read what no layer makes."""
    model.layers[-1].set_input(0, Value("nothing"))
    return 1


def test_a_pass_that_leaves_an_inconsistent_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_moves, "run", _breaking)
    with pytest.raises(PassError, match=r"the pass 'merge_moves'.*reads 'nothing'.*optimize=False"):
        load([node("Relu", "x", "a"), node("Neg", "a", "y")], {"x": [2]})


def test_an_error_of_the_shapes_names_the_passes_that_changed_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass gives a layer an axis that it cannot have; a later one meets the error."""

    def spoilt(model: pf.Model, _evaluate: Any) -> int:
        layer = next(layer for layer in model.layers if layer.op == "Softmax")
        if layer.attributes["axis"] == 7:
            return 0
        layer.attributes = {"axis": 7}
        return 1

    monkeypatch.setattr(remove_noops, "run", spoilt)
    with pytest.raises(PassError, match=r"which runs after remove_noops to optimize it.*'y' \(Softmax\)"):
        load([node("Relu", "x", "a"), node("Softmax", "a", "y", axis=0)], {"x": [2]})


def test_an_error_of_the_file_stays_what_it_is() -> None:
    """Shapes that do not fit, with a constant that is folded before; an index of constants that is outside."""
    nodes = [node("Neg", "c", "d"), node("Add", "x d", "y")]
    with pytest.raises(InferenceError, match="broadcast") as found:
        load(nodes, {"x": [2, 3]}, {"c": random(4)})
    assert not isinstance(found.value, PassError)
    nodes = [node("Neg", "c", "d"), node("Gather", "d i", "e"), node("Add", "x e", "y")]
    with pytest.raises(pf.PerframeError) as found:
        pf.run(load(nodes, {"x": [2, 3]}, {"c": random(4), "i": np.array([9])}), {"x": random(2, 3)})
    assert not isinstance(found.value, PassError)


def test_passes_of_bodies_count_in_stop_after() -> None:
    """Without any pass, bodies are as they are in the file; reports tell the body."""
    value = helper.make_tensor_value_info("t", TensorProto.FLOAT, [2])
    body = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["s"]), helper.make_node("Relu", ["s"], ["t"], "relu")], "b", [], [value]
    )
    nodes = [helper.make_node("If", ["c"], ["z"], "if", then_branch=body, else_branch=body)]
    nodes += [node("Identity", "z", "i"), node("Neg", "i", "y")]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]), helper.make_tensor_value_info("c", 9, [])]
    made = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

    def layers(stop_after: int | None) -> list[int]:
        model = pf.load(proto, stop_after=stop_after)
        branch = next(layer for layer in model.layers if layer.op == "If")
        return [*(len(body.layers) for body in branch.attributes["bodies"].values()), len(model.layers)]

    assert layers(0) == [2, 2, 3] and layers(1) == [1, 2, 3] and layers(2) == [1, 1, 3] and layers(None) == [1, 1, 2]
    report = pf.load(proto).report
    numbered = {run.number: (run.name, run.body) for run in report.passes if run.number}
    assert {numbered[1], numbered[2]} == {("remove_noops", f"if {which}_branch") for which in ("then", "else")}
    assert numbered[3] == ("remove_noops", "")


# --- optimize=False ---


def test_nothing_is_fused_in_a_model_as_it_is_in_its_file(backend: str) -> None:
    """Each layer of the file is there, by its name, and has no epilogue; what is new moves data."""
    model = pf.load(network(), optimize=False)
    prepared = prepare(model, evaluator(), backend)
    assert {layer.name for layer in model.layers} - {"f"} <= {layer.name for layer in prepared.layers}
    assert not any(layer.epilogue for layer in prepared.layers)
    names = preparations(model, backend)
    assert not {name for name in names if name.startswith(("fuse", "fold", "keep", "merge", "recognise", "split"))}
    whole = prepare(pf.load(network()), evaluator(), backend)
    assert len(whole.layers) < len(prepared.layers)


def test_bodies_stay_as_they_are_too(monkeypatch: pytest.MonkeyPatch, backend: str, backend_context: Any) -> None:
    """No pass that fuses runs for a model, its branches and loops, or the branches that shapes decide."""
    ran: list[str] = []
    monkeypatch.setattr(fold_constants, "run", lambda *_given: ran.append("fold") or 0)
    value = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["t"], "n")], "b", [], [value])
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "first"),
        node("Greater", "first zero", "open"),
        helper.make_node("If", ["open"], ["u"], "if", then_branch=body, else_branch=body),
        helper.make_node("If", ["c"], ["v"], "other", then_branch=body, else_branch=body),
        node("Add", "u v", "y"),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]), helper.make_tensor_value_info("c", 9, [])]
    zero = onnx.numpy_helper.from_array(np.array(0), "zero")
    made = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [zero])
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    x = np.array([1, -2], np.float32)
    with pf.Worker(pf.load(proto, optimize=False), backend, backend_context) as worker:
        got = worker.schedule({"x": x, "c": np.array(True)}).peek_output("y").download_to_array()
    assert np.array_equal(got, -2 * x) and not ran
    with pf.Worker(pf.load(proto, stop_after=0), backend, backend_context) as worker:
        worker.schedule({"x": x, "c": np.array(True)}).peek_output("y").download_to_array()
    assert ran


@pytest.mark.parametrize("backend_type", list(PREPARATIONS))
def test_so_many_preparations_run_as_are_asked_for(backend_type: str) -> None:
    model = pf.load(network())
    whole = list(preparations(model, backend_type))
    assert whole == list(PREPARATIONS[backend_type])
    for count in range(len(whole) + 1):
        model.preparations = count
        assert list(preparations(model, backend_type))[:count] == whole[:count]
    assert set(whole) <= set(preparations(model, backend_type))


def test_a_layer_that_does_not_change_is_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # each layer has sizes of its own, so that none is like another
    count, inferred, infer = 40, collections.Counter[str](), Layer.infer
    monkeypatch.setattr(Layer, "infer", lambda layer, given: (inferred.update([layer.name]), infer(layer, given))[1])
    nodes = [node("Concat", f"x{index} x{index}", f"x{index + 1}", axis=index % 2) for index in range(count // 4)]
    nodes += [node("ConstantOfShape", "sizes", "z"), node("Add", "z k", "s"), node("ReduceSum", "s", "t", keepdims=0)]
    nodes += [node("Transpose", f"x{count // 4}", "u", perm=[1, 0]), node("Relu", "u", "r"), node("Add", "r t", "y")]
    load(nodes, {"x0": [1, 2], "k": [2, 3]}, {"sizes": np.array([2, 3])})
    assert sum(inferred.values()) <= len(nodes) + 2, inferred.most_common(5)


def test_an_open_dim_may_not_be_one() -> None:
    """The report's multiply-adds take open dims as 1; where that does not fit, they are unknown."""
    made = graph([node("Gemm", "x w b", "y", alpha=0.5)], {"x": [2, 3], "w": [3, "n"]}, {"b": random(4)})
    model = pf.load(made)
    assert model.report is not None and model.report.after.multiply_adds is None
    facts = pf.inspect(made)  # chooses sizes that fit
    assert facts.sizes == {"n": 4} and facts.layers[0].multiply_adds == 24
    with pytest.raises(InferenceError, match=r"third input of Gemm.* does not broadcast"):
        specs(model, {"w": PartialTensor.of(random(3, 5))})
    x, w = random(2, 3), random(3, 4, seed=1)
    np.testing.assert_allclose(pf.run(model, {"x": x, "w": w})["y"], 0.5 * x @ w + random(4), rtol=1e-5)


def test_preparations_say_what_they_changed_and_refused() -> None:
    names = [*(f"v{index}" for index in range(MAX_STAGES + 1)), "y"]
    chain = [node("Neg" if i % 2 else "Sin", a, b) for i, (a, b) in enumerate(itertools.pairwise(["x", *names]))]
    model = load(chain, {"x": [1, 3, 5, 5]})
    prepared = prepare(model, evaluator(), "cpu", explain=True)
    assert prepared.report is not None and prepared.report is not model.report
    assert [one.name for one in prepared.report.passes] == list(preparations(model, "cpu"))
    assert "fused layers" in str(prepared.report.refusals["fuse_activation"][0])
    assert prepare(model, evaluator(), "cpu").report is not prepared.report
