"""`perframe convert` as users meet it."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from command_line.test_cli import Command, perframe  # noqa: F401, a fixture
from conversion.handmade import written

# stands in for a Python with PyTorch: takes the request for the conversion, and says what it was
FAKE = f"""#!{sys.executable}
import json, os, sys
import numpy as np
request = json.load(open(sys.argv[2]))
open("request.json", "w").write(json.dumps(request))
open(request["out"], "wb").write(open("relu.onnx", "rb").read())
json.dump({{"inputs": ["x"], "outputs": ["y"], "opset": 18, "with": "a fake"}}, open(sys.argv[3], "w"))
if request["values"]:
    x = np.array([1.0, -2.0, 3.0], np.float32)
    np.savez(request["values"], **{{"input 0": x, "output 0": np.maximum(x, 0) + float(os.environ.get("WRONG", 0))}})
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a file of PyTorch, and a program that converts it."""
    if sys.platform == "win32":
        pytest.skip("Windows runs no scripts by their first line")
    spec = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "clip")], "relu", spec[:1], spec[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "relu.onnx"
    )
    written(tmp_path, "exported_program")
    written(tmp_path, "checkpoint")
    (tmp_path / "fake").write_text(FAKE)
    (tmp_path / "fake").chmod(stat.S_IRWXU)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_reach_the_conversion(perframe: Command, folder: Path) -> None:  # noqa: F811
    options = ["--opset", 20, "--input", "x:1x3", "--input", "ids:2:int64", "--dynamic", "x:0=batch", "--trust"]
    done = perframe("convert", "m.pt2", "made.onnx", "--python", "./fake", *options, "--output", "y", "--seed", 7)
    assert (done.status, done.err) == (0, "")
    assert "m.pt2 is a PyTorch program of torch.export" in done.out and "opset 18, made with a fake" in done.out
    request = json.loads((folder / "request.json").read_text())
    assert request["inputs"] == [
        {"name": "x", "shape": [1, 3], "dtype": "float32"},
        {"name": "ids", "shape": [2], "dtype": "int64"},
    ]
    assert request["dynamic"] == [{"input": "x", "axis": 0, "name": "batch"}]
    assert (request["opset"], request["trust"], request["outputs"], request["seed"]) == (20, True, ["y"], 7)
    assert request["folder"] == str(folder) and request["values"] is None


@pytest.mark.quick(cases=0)
def test_verification_decides_the_exit_status(
    perframe: Command,  # noqa: F811
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = perframe("convert", "m.pt2", "made.onnx", "--python", "./fake", "--verify")
    assert done.status == 0 and "agrees" in done.out
    monkeypatch.setenv("WRONG", "0.1")
    done = perframe("convert", "m.pt2", "made.onnx", "--python", "./fake", "--verify")
    assert done.status == 1 and "differs" in done.out
    done = perframe("convert", "m.pt2", "made.onnx", "--python", "./fake", "--verify", "--json")
    found = json.loads(done.out)
    assert done.status == 1 and found["verified"] and not found["agrees"]
    assert found["errors"][0]["apart"] == pytest.approx(0.1) and found["kind"] == "exported_program"


def test_errors_say_what_the_file_is(perframe: Command, folder: Path) -> None:  # noqa: F811
    done = perframe("convert", "m.pth.tar", "made.onnx")
    assert done.status == 1 and "state_dict/conv.weight: float32 4×3×3×3" in done.err
    assert perframe("convert", "m.pt2", "made.onnx", "--input", "x").status == 1
    assert perframe("convert", "m.pt2").status == 2
    assert not (folder / "made.onnx").exists()
