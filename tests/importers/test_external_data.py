"""Weights in other files: those beside the model are read, and nothing else is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf

WEIGHTS = np.arange(6, dtype=np.float32).reshape(3, 2)
PLACES = ("initializer", "constant", "function", "default", "branch", "sparse")


def external(dims: tuple[int, ...] = (3, 2), kind: int = TensorProto.FLOAT, **entries: Any) -> onnx.TensorProto:
    tensor = TensorProto(name="w", data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def model(tensor: onnx.TensorProto, place: str = "initializer") -> onnx.ModelProto:
    """y is the tensor, wherever in the file it stands."""
    nodes, functions = [helper.make_node("Identity", ["w"], ["y"])], []
    constant = helper.make_node("Constant", [], ["w"], value=tensor)
    if place == "constant":
        nodes.insert(0, constant)
    elif place in ("function", "default"):
        inner = constant if place == "function" else helper.make_node("Constant", [], ["w"])
        if place == "default":
            inner.attribute.add(name="value", type=onnx.AttributeProto.TENSOR, ref_attr_name="which")
        function = helper.make_function("local", "F", [], ["w"], [inner], [helper.make_opsetid("", 17)])
        if place == "default":
            function.attribute_proto.append(helper.make_attribute("which", tensor))
        functions.append(function)
        nodes.insert(0, helper.make_node("F", [], ["w"], domain="local"))
    elif place == "branch":
        infos = [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)]
        body = helper.make_graph([helper.make_node("Identity", ["w"], ["z"])], "body", [], infos, [tensor])
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)]
    infos = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", [], infos, [tensor] if place == "initializer" else [])
    if place == "branch":
        graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    if place == "sparse":
        sparse = graph.sparse_initializer.add(dims=[6])
        sparse.values.CopyFrom(tensor)
        sparse.values.dims[:] = [6]
        sparse.indices.CopyFrom(helper.make_tensor("at", TensorProto.INT64, [6], range(6)))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def run(source: Any, place: str = "initializer") -> Any:
    return pf.run(source, {"c": np.array(True)} if place == "branch" else {})["y"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder; beside it lies a file that is none of its business."""
    folder = tmp_path / "models"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    return folder


def saved(folder: Path, tensor: onnx.TensorProto, place: str = "initializer") -> Path:
    path = folder / "m.onnx"
    path.write_bytes(model(tensor, place).SerializeToString())
    return path


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("location", ["weights.bin", "inner/weights.bin", "./inner/../weights.bin"])
def test_data_beside_the_model_is_read(place: str, location: str, folder: Path) -> None:
    for name in ("weights.bin", "inner/weights.bin"):
        (folder / name).write_bytes(WEIGHTS.tobytes())
    made = run(saved(folder, external(location=location), place), place)
    np.testing.assert_array_equal(made, WEIGHTS.reshape(made.shape))


def test_a_part_of_a_file_is_read(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"1234" + WEIGHTS.tobytes() + b"56")
    np.testing.assert_array_equal(run(saved(folder, external(location="weights.bin", offset=4, length=24))), WEIGHTS)
    np.testing.assert_array_equal(run(saved(folder, external(location="weights.bin", offset=4))), WEIGHTS)


@pytest.mark.parametrize("place", PLACES)
def test_what_has_no_folder_reads_nothing(place: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the current one either."""
    (folder / "weights.bin").write_bytes(WEIGHTS.tobytes())
    monkeypatch.chdir(folder)
    proto = model(external(location="weights.bin"), place)
    for source in (proto, proto.SerializeToString()):
        with pytest.raises(pf.ModelError, match="load the model by its path"):
            pf.load(source)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "inner/../../secret.bin", "/etc/passwd", "link.bin", "linked/secret.bin", ".", "..", "inner"],
)
def test_data_outside_the_folder_is_not_read(place: str, location: str, folder: Path) -> None:
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    (folder / "linked").symlink_to(folder.parent)
    with pytest.raises(pf.ModelError, match=r"outside|not a file"):
        pf.load(saved(folder, external(location=location), place))


def test_data_of_a_second_name_is_not_read(folder: Path) -> None:
    """A hard link is a file elsewhere that nothing shows to be there."""
    os.link(folder.parent / "secret.bin", folder / "hard.bin")
    with pytest.raises(pf.ModelError, match="hard link"):
        pf.load(saved(folder, external(location="hard.bin")))


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(pf.ModelError, match="not a file"):
        pf.load(saved(folder, external(location="pipe")))


@pytest.mark.parametrize("location", ["", "a\0b", "x" * 5000, "nowhere.bin", "round.bin"])
def test_a_location_that_is_no_file(location: str, folder: Path) -> None:
    (folder / "round.bin").symlink_to("round.bin")
    with pytest.raises(pf.ModelError, match="'w'"):
        pf.load(saved(folder, external(location=location)))


def test_two_locations_of_one_tensor(folder: Path) -> None:
    """If checks used one location and reading the other, a file could read anything."""
    (folder / "weights.bin").write_bytes(WEIGHTS.tobytes())
    tensor = external(location="weights.bin")
    tensor.external_data.add(key="location", value="../secret.bin")
    with pytest.raises(pf.ModelError, match="two of 'location'"):
        pf.load(saved(folder, tensor))


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": 8},
        {"offset": -4},
        {"offset": 2**62},
        {"offset": 2**63},
        {"offset": "x"},
        {"length": -1},
        {"length": 23},
        {"length": 2**62},
        {"length": "1e3"},
        {"dims": (2**31,)},
        {"dims": (2**62, 4)},
        {"dims": (-6,)},
        {"dims": (-3, -2)},
        {"kind": TensorProto.STRING},
        {"kind": 99},
    ],
    ids=str,
)
def test_a_place_outside_the_file(entries: dict[str, Any], folder: Path) -> None:
    (folder / "weights.bin").write_bytes(WEIGHTS.tobytes())
    with pytest.raises(pf.ModelError, match=r"'w'|element type"):
        pf.load(saved(folder, external(location="weights.bin", **entries)))
