"""`pf.convert` without frameworks: what it refuses, workers that fail, and what stays at the target."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf
from conversion.handmade import MODULE, legacy, written
from perframe.conversion import converting, environments
from perframe.conversion.workers.worker_shared import Refused, name_dims
from perframe.errors import ConversionError, InputError, MissingFileError, ModelError

Fake = Callable[[str], Path]

HEADER = f"""#!{sys.executable}
import json, os, sys, time
request, reply = json.load(open(sys.argv[2])), sys.argv[3]
def answer(**found):
    json.dump(found, open(reply, "w"))
FULL = {{"inputs": [], "outputs": [], "opset": 18, "with": "a fake"}}
def write():
    import numpy as np
    open(request["out"], "wb").write(open(os.environ["MADE"], "rb").read())
    answer(**{{"inputs": ["x"], "outputs": ["y"], "opset": 18, "with": "a fake"}})
    if request["values"]:
        x = np.array([1.0, -2.0, 3.0], np.float32)
        y = np.maximum(x, 0) + float(os.environ.get("WRONG", 0))
        np.savez(request["values"], **{{"input 0": x, "output 0": y}})
"""


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    """An ONNX file, y = Relu(x), on three numbers."""
    spec = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "clip")], "relu", spec[:1], spec[1:])
    path = tmp_path / "relu.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


@pytest.fixture
def fake(tmp_path: Path, relu: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Makes a program that stands in for a Python with PyTorch, and does what its code says."""
    if sys.platform == "win32":
        pytest.skip("Windows runs no scripts by their first line")
    monkeypatch.setenv("MADE", str(relu))

    def make(code: str) -> Path:
        path = tmp_path / "python"
        path.write_text(HEADER + code)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A file that detection takes for a program of PyTorch."""
    return written(tmp_path, "exported_program")


def test_a_worker_writes_the_file(fake: Fake, program: Path, tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    code = "print('perframe-progress 0.5 writing ONNX')\nwrite()"
    made = pf.convert(program, tmp_path / "made.onnx", python=fake(code), progress=lambda *step: told.append(step))
    assert ("writing ONNX", 0.5) in told and not made.errors and made.made_with == "a fake"
    assert made.bytes == made.target.stat().st_size
    np.testing.assert_array_equal(pf.run(made.target, {"x": np.array([1, -1, 2], np.float32)})["y"], [1, 0, 2])


@pytest.mark.quick(cases=0)
def test_verification_compares(fake: Fake, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pf.convert(program, tmp_path / "made.onnx", python=fake("write()"), verify=True)
    assert made.agrees and made.errors[0].apart == 0
    monkeypatch.setenv("WRONG", "0.01")
    made = pf.convert(program, tmp_path / "made.onnx", python=fake("write()"), verify=True)
    assert not made.agrees
    assert made.errors[0].apart == pytest.approx(0.01) and made.errors[0].relative == pytest.approx(0.01 / 3.01)
    monkeypatch.setenv("WRONG", "nan")
    assert not pf.convert(program, tmp_path / "made.onnx", python=fake("write()"), verify=True).agrees


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('the reason'); sys.exit(3)", r"ended with exit status 3\n  \| the reason"),
        ("os.kill(os.getpid(), 9)", "signal SIGKILL"),
        ("time.sleep(60)", "took longer than 1 s"),
        ("import no_such_module", r"ModuleNotFoundError(.|\n)*needs PyTorch and onnxscript"),
        ("pass", "its process left no reply"),
        ("open(reply, 'w').write('{')", "its process left no reply"),
        ("answer(refused='no shapes: pass --input')", r"m\.pt2 is a PyTorch program of torch\.export: no shapes"),
        ("print('deep inside'); answer(error='ValueError: odd')", r"ValueError: odd\n  \| deep inside"),
        ("answer(inputs=[], outputs=[], opset=18)", "the exporter wrote no file"),
        ("open(request['out'], 'wb').write(b'no model'); answer(inputs=[])", "wrote no file"),
        ("open(request['out'], 'wb').write(b'no'); answer(**{**FULL})", r"made\.onnx"),
    ],
)
def test_a_worker_that_fails(fake: Fake, program: Path, tmp_path: Path, code: str, said: str) -> None:
    target = tmp_path / "made.onnx"
    target.write_bytes(b"before")
    with pytest.raises(ModelError, match=said):
        pf.convert(program, target, python=fake(code), timeout=1, verify=True)
    assert target.read_bytes() == b"before"
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_weights_beside_the_file(fake: Fake, program: Path, tmp_path: Path) -> None:
    code = "write()\nopen(request['out'] + '.data', 'wb').write(b'weights')"
    pf.convert(program, tmp_path / "made.onnx", python=fake(code))
    assert (tmp_path / "made.onnx.data").read_bytes() == b"weights"


def test_without_trust_and_builder_no_process_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "made_environment", lambda *_: pytest.fail("an environment is made"))
    old = tmp_path / "old.pt"
    old.write_bytes(legacy(MODULE))
    for path, said in (
        (written(tmp_path, "module"), r"imports shapes\.Net"),
        (old, r"imports shapes\.Net"),
        (written(tmp_path, "checkpoint"), r"--builder module:function\nIt holds 2 tensors with 112 numbers"),
        (written(tmp_path, "safetensors"), r"w: F32 2×3"),
    ):
        with pytest.raises(ConversionError, match=said):
            pf.convert(path, tmp_path / "made.onnx")


def test_wrong_arguments(tmp_path: Path, relu: Path) -> None:
    for target, said in (
        (tmp_path / "made.txt", r"must end with one of \.perframe, \.onnx, \.sentis"),
        (tmp_path / "none" / "made.onnx", "there is no folder"),
        (relu, "give another name"),
    ):
        with pytest.raises(InputError, match=said):
            pf.convert(relu, target)
    with pytest.raises(InputError, match="opset must be 15 to 26"):
        pf.convert(relu, tmp_path / "made.onnx", opset=11)
    with pytest.raises(InputError, match="--builder takes MODULE:FUNCTION"):
        pf.convert(written(tmp_path, "checkpoint"), tmp_path / "made.onnx", builder="networks")
    with pytest.raises(MissingFileError):
        pf.convert(tmp_path / "none.pt", tmp_path / "made.onnx")


def test_files_that_perframe_reads(relu: Path, tmp_path: Path) -> None:
    own = pf.convert(relu, tmp_path / "made.perframe", verify=True)
    back = pf.convert(own.target, tmp_path / "back.onnx", verify=True)
    assert (own.kind, back.kind) == ("onnx", "perframe") and own.agrees and back.agrees
    assert [*back.inputs] == ["x"] and back.errors[0].output == "y"


@pytest.mark.parametrize("interpreter", [True, False])
def test_litert_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interpreter: bool) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, which writes the files")
    from importers.litert_models import network

    if not interpreter:
        monkeypatch.setattr(converting, "find_spec", lambda _name: None)
    path = tmp_path / "network.tflite"
    path.write_bytes(network()[0])
    made = pf.convert(path, tmp_path / "made.onnx", verify=True)
    assert made.kind == "litert" and made.agrees and made.errors[0].relative < 1e-5
    assert onnx.load(made.target).graph.input[0].name == "image"


def test_names_of_dims(tmp_path: Path) -> None:
    """A dim of an input gets a name everywhere, and one that the file fixes is refused."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["s1", 3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, "s1"])]
    graph = helper.make_graph([helper.make_node("Transpose", ["x"], ["y"])], "turned", inputs, outputs)
    path = tmp_path / "turned.onnx"
    onnx.save(helper.make_model(graph), path)
    name_dims(str(path), [{"input": "x", "axis": -2, "name": "batch"}])
    found = onnx.load(path).graph
    shapes = [one.type.tensor_type.shape for one in (*found.input, *found.output)]
    names = [[dim.dim_param or dim.dim_value for dim in shape.dim] for shape in shapes]
    assert names == [["batch", 3], [3, "batch"]]
    for wanted, said in (
        ({"input": "z", "axis": 0, "name": "n"}, "no input 'z'; there are x"),
        ({"input": "x", "axis": 2, "name": "n"}, "has 2 dims, and none with the index 2"),
        ({"input": "x", "axis": 1, "name": "n"}, "dim 1 of 'x' is 3 in the file"),
    ):
        with pytest.raises(Refused, match=said):
            name_dims(str(path), [wanted])
