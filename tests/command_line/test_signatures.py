"""`--signature` chooses what a LiteRT file computes, in all commands that load one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import perframe as pf
from command_line.conftest import Command
from perframe.command_line.cli import app

pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, which writes the files")

from importers.test_litert import two_signatures


@pytest.fixture
def codec(tmp_path: Path) -> str:
    path = tmp_path / "codec.tflite"
    path.write_bytes(two_signatures()[1])
    return str(path)


def told(*words: str) -> str:
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(("signature", "output"), [("encode", "code"), ("decode", "text")])
def test_commands_take_the_chosen_graph(codec: str, tmp_path: Path, signature: str, output: str) -> None:
    chosen = ("--signature", signature)
    shape = (2, 3) if signature == "encode" else (4,)
    facts = json.loads(told("inspect", codec, "--json", *chosen))
    assert output in json.dumps(facts["outputs"])
    assert json.loads(told("inspect", codec, "--memory", "--json", *chosen))["arena"] >= 0
    page = tmp_path / "page.html"
    told("inspect", codec, "--html", str(page), *chosen)
    assert page.stat().st_size
    run = json.loads(told("run", codec, "--json", "--backend", "cpu", *chosen))
    assert list(run["outputs"]) == [output] and run["outputs"][output]["shape"] == list(shape)
    (checked,) = json.loads(told("check", codec, "--json", "--backend", "cpu", *chosen))
    assert checked["error"] is None
    for against in ((), ("--against", "unoptimized")):
        compared = json.loads(told("compare", codec, "--json", "--backend", "cpu", *against, *chosen))
        assert output in json.dumps(compared)
    made = tmp_path / "made.perframe"
    told("optimize", codec, "--out", str(made), *chosen)
    assert pf.load(made).output_names == [output]
    told("compare", codec, "--json", "--backend", "cpu", "--against", str(made), *chosen)


@pytest.mark.parametrize(("signature", "output"), [("encode", "code"), ("decode", "text"), (None, "code")])
def test_conversions_take_the_chosen_graph(codec: str, tmp_path: Path, signature: str | None, output: str) -> None:
    """LiteRT's interpreter runs the same signature."""
    target = tmp_path / "made.onnx"
    chosen = () if signature is None else ("--signature", signature)
    report = json.loads(told("convert", codec, str(target), "--verify", "--json", *chosen))
    assert report["agrees"] and report["verified"] and report["outputs"] == [output]
    values = np.arange(-3, 3, dtype=np.float32).reshape(2, 3) if output == "code" else np.arange(4, dtype=np.float32)
    (name,) = report["inputs"]
    expected = np.abs(values) if output == "code" else -values
    np.testing.assert_array_equal(pf.run(target, {name: values})[output], expected)


def test_other_files_and_names(codec: str, tmp_path: Path, perframe: Command) -> None:
    with pytest.raises(pf.ModelError, match="no signature 'serve': its signatures are 'decode', 'encode'"):
        pf.convert(codec, tmp_path / "made.onnx", signature="serve")
    pf.convert(codec, tmp_path / "made.onnx")
    with pytest.raises(pf.InputError, match=r"is an ONNX model: --signature is for LiteRT files and SavedModels"):
        pf.convert(tmp_path / "made.onnx", tmp_path / "again.onnx", signature="decode")
    status, _, said = perframe("run", tmp_path / "made.onnx", "--signature", "decode")
    assert status == 1 and "is not a LiteRT file, and has no signature 'decode'" in said
