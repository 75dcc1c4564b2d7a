"""Texts that a file holds beside its graph, such as the names of classes: they stay through all formats."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import perframe as pf
from files.rewriting import Parts, saved
from perframe.command_line.cli import app
from small import load, node

NAMES = str({at: f"class {at}" for at in range(80)})
METADATA = {"names": NAMES, "stride": "32", "author": "日本\nline", "empty": ""}


@pytest.fixture
def proto() -> onnx.ModelProto:
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", info[:1], info[1:])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.helper.set_model_props(made, METADATA)
    return made


@pytest.mark.quick(cases=0)
def test_they_stay_through_every_file(proto: onnx.ModelProto, tmp_path: Path) -> None:
    model = pf.load(proto)
    assert model.metadata == METADATA
    for name, key in (("m.onnx", None), ("m.perframe", None), ("locked.perframe", "secret")):
        pf.save(model, tmp_path / name, key)
        assert pf.load(tmp_path / name, key=key).metadata == METADATA
    held = onnx.load(tmp_path / "m.onnx")
    assert {entry.key: entry.value for entry in held.metadata_props} == METADATA
    file = io.BytesIO()
    pf.save(model, file)
    assert pf.load(file.getvalue()).metadata == METADATA


def test_they_stay_in_copies_and_quantized_models(proto: onnx.ModelProto) -> None:
    model = pf.load(proto)
    copy = model.copy()
    assert copy.metadata == METADATA and copy.metadata is not model.metadata
    weights = {"w": np.ones((64, 64), np.float32)}
    whole = load([node("MatMul", "x w", "y")], {"x": [1, 64]}, constants=weights)
    whole.metadata["names"] = NAMES
    assert pf.quantize(whole, "int8").metadata == {"names": NAMES}


def test_they_stay_in_an_edited_model(proto: onnx.ModelProto, tmp_path: Path) -> None:
    """As where a detector gets its own end: the names of its classes stay, and the graph's own texts count first."""
    model, graph = pf.load(proto), pf.FunctionalGraph()
    graph.metadata["stride"] = "16"
    (y,) = pf.functional.forward(model, *graph.add_inputs(model))
    pf.save(graph.compile(z=y * 2), tmp_path / "edited.onnx")
    assert pf.load(tmp_path / "edited.onnx").metadata == METADATA | {"stride": "16"}
    assert model.metadata == METADATA


def test_a_model_without_them(tmp_path: Path) -> None:
    model = load([node("Relu", "x", "y")], {"x": [2]})
    assert model.metadata == {} and pf.inspect(model).metadata == {}
    pf.save(model, tmp_path / "m.onnx")
    assert not onnx.load(tmp_path / "m.onnx").metadata_props


@pytest.mark.parametrize("name", ["m.onnx", "m.perframe"])
@pytest.mark.parametrize("metadata", [{"stride": 32}, {3: "x"}, {"names": ["a"]}])
def test_other_values_are_refused(tmp_path: Path, name: str, metadata: Any) -> None:
    model = load([node("Relu", "x", "y")], {"x": [2]})
    model.metadata.update(metadata)
    with pytest.raises(pf.ModelError, match="metadata are texts by name"):
        pf.save(model, tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("wrong", [5, ["a"], {"a": 5}, None, "text"])
def test_a_file_with_wrong_metadata(wrong: Any) -> None:
    parts = Parts.of(saved(load([node("Relu", "x", "y")], {"x": [2]})))
    parts.graph["metadata"] = wrong
    with pytest.raises(pf.ModelError, match="metadata are not texts by name"):
        pf.load(parts.sealed())


def test_a_file_of_an_older_version_has_none() -> None:
    parts = Parts.of(saved(load([node("Relu", "x", "y")], {"x": [2]})))
    del parts.graph["metadata"]
    assert pf.load(parts.sealed()).metadata == {}


def test_inspect_shows_them(proto: onnx.ModelProto, tmp_path: Path) -> None:
    onnx.save(proto, tmp_path / "m.onnx")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.onnx")]).output
    assert "stride: 32" in shown and "author: 日本 line" in shown
    assert "names: {0: 'class 0'" in shown and f"({len(NAMES):,} characters)" in shown and "class 79" not in shown
    listed = json.loads(CliRunner().invoke(app, ["inspect", str(tmp_path / "m.onnx"), "--json"]).output)
    assert listed["metadata"] == METADATA
