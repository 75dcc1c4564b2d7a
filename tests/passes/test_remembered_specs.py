"""A loaded model keeps its inferred specs for workers, but none that a change in place could make wrong."""

from __future__ import annotations

import collections

import numpy as np
import onnx
import pytest
from graphs import graph, node

import perframe as pf
from perframe.ir import Layer


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> collections.Counter[str]:
    """The layers whose shape rules ran, by name."""
    counts, infer = collections.Counter[str](), Layer.infer
    monkeypatch.setattr(Layer, "infer", lambda layer, given: (counts.update([layer.name]), infer(layer, given))[1])
    return counts


def _shaped() -> onnx.ModelProto:
    """A reshape to a constant shape, and layers that all differ."""
    nodes = [node("Reshape", "x shape", "a"), node("Softmax", "a", "b", axis=0), node("Transpose", "b", "y")]
    return graph(nodes, {"x": ["n", 6]}, {"shape": np.array([-1, 2, 3])})


def test_a_worker_infers_no_layer_of_a_loaded_model_again(inferred: collections.Counter[str]) -> None:
    model = pf.load(_shaped())
    assert inferred
    inferred.clear()
    pf.Worker(model).release()
    model.infer()
    assert not inferred


def test_an_edited_layer_is_inferred_again(inferred: collections.Counter[str]) -> None:
    model = pf.load(_shaped())
    inferred.clear()
    next(layer for layer in model.layers if layer.op == "Transpose").attributes["perm"] = (0, 1, 2)
    model.infer()
    assert list(inferred) == ["y"]
    assert model.outputs[0].spec.shape == ("n", 2, 3)


def test_specs_that_depend_on_a_writable_constant_are_not_kept() -> None:
    model, shape = pf.load(_shaped()), np.array([-1, 2, 3])
    model.value("shape").constant = shape
    with model.remembering():
        model.infer()
    shape[:] = -1, 3, 2
    model.infer()
    assert model.value("a").spec.shape is not None and model.value("a").spec.shape[1:] == (3, 2)
    with pf.Worker(model) as worker:
        made = worker.schedule(np.zeros((4, 6), np.float32)).peek_output().numpy()
    assert made.shape == (2, 3, 4)
