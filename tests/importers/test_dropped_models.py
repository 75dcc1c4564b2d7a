"""What stays in memory of models that were dropped."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.safety import collection


def file_of(size: int) -> bytes:
    """A model with weights of `size` bytes."""
    info = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.ones((size // 4,), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [info("x", TensorProto.FLOAT, [1])],
        [info("y", TensorProto.FLOAT, [size // 4])],
        [weights],
    )
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString())


def weights_of(model: pf.Model) -> weakref.ref[object]:
    (array,) = model.constants.values()
    return weakref.ref(array)


@pytest.mark.parametrize("is_disabled", [False, True])
def test_the_next_load_frees_large_ones(is_disabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are cycles, and Python would search for them when there are many objects, however large these are."""
    monkeypatch.setattr(collection, "MOST_DROPPED", 1 << 20)
    large, small = file_of(2 << 20), file_of(1 << 10)
    gc.collect()
    if is_disabled:
        gc.disable()
    try:
        model = pf.load(large)
        weights = weights_of(model)
        pf.load(small)
        assert weights() is not None
        del model
        pf.load(small)
        assert (weights() is None) is not is_disabled  # who disabled the collector collects when it suits them
    finally:
        gc.enable()


def test_kept_ones_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "MOST_DROPPED", 1 << 20)
    path = tmp_path / "m.onnx"
    path.write_bytes(file_of(2 << 20))
    pf.load(path)
    weights = weights_of(pf.load(path))
    pf.load(file_of(1 << 10))
    assert weights() is None
