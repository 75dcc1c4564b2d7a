"""Commands write models under names that say so: .perframe, .onnx, .sentis, .glsl or no suffix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import perframe as pf
from perframe.command_line.cli import app
from perframe.exporters.saving import check_name
from small import load, node

RUNNER = CliRunner()


def small() -> pf.Model:
    return load([node("Neg", "x", "y")], {"x": [2]})


@pytest.mark.parametrize("name", ["m.txt", "m.pt", "m.onnx.gz", "m.npz", "v1.2"])
def test_other_suffixes_are_refused(name: str) -> None:
    with pytest.raises(pf.InputError, match=r"\.perframe, \.onnx or \.sentis"):
        check_name(name)


def test_a_name_is_no_model_to_save(tmp_path: Path) -> None:
    with pytest.raises(pf.InputError, match=r"save takes a Model, and got str: save\(pf\.load\(\.\.\.\)"):
        pf.save("painter", tmp_path / "m.onnx")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["m", "m.PERFRAME", "v1.2.onnx"])
def test_fitting_names_are_taken(name: str, tmp_path: Path) -> None:
    check_name(name)
    pf.save(small(), tmp_path / name)
    assert pf.run(tmp_path / name, np.ones(2, np.float32))["y"].tolist() == [-1, -1]


@pytest.mark.parametrize("command", ["save {} x.txt", "optimize {} --out x.txt", "quantize {} x.txt"])
def test_commands_refuse_before_they_work(command: str, tmp_path: Path) -> None:
    words = command.format("there-is-no-such-model.onnx").split()  # the name is checked before the model is read
    done = subprocess.run(
        [sys.executable, "-m", "perframe.command_line.cli", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1 and "x.txt" in done.stderr and not (tmp_path / "x.txt").exists()


def test_one_input_needs_no_name() -> None:
    assert pf.run(small(), np.ones(2, np.float32))["y"].tolist() == [-1, -1]
    assert pf.run(small(), [1.0, 2.0])["y"].tolist() == [-1, -2]
    assert pf.run(small(), pf.Tensor(np.ones(2, np.float32)))["y"].tolist() == [-1, -1]
    two = load([node("Add", "a b", "y")], {"a": [2], "b": [2]})
    with pytest.raises(pf.InputError, match=r"by name.*the inputs a, b"):
        pf.run(two, np.ones(2, np.float32))


def test_a_glsl_file_is_a_function_with_the_files_name(tmp_path: Path) -> None:
    model = load([node("Neg", "x", "y")], {"x": ["n", 2]})
    pf.save(model, tmp_path / "the marble-2.glsl")
    text = (tmp_path / "the marble-2.glsl").read_text("utf-8")
    assert text == pf.to_glsl(model, "the_marble_2") and "void the_marble_2(in vec2 x, out vec2 y)" in text
    with pytest.raises(pf.InputError, match=r"\.glsl file cannot be encrypted"):
        pf.save(model, tmp_path / "m.glsl", key="secret")
    with pytest.raises(pf.ModelError, match="cannot express"):
        pf.save(load([node("Softmax", "x", "y")], {"x": ["n", 2]}), tmp_path / "soft.glsl")
    assert [path.name for path in tmp_path.iterdir()] == ["the marble-2.glsl"]


@pytest.mark.parametrize("command", ["save {} net.glsl", "optimize {} --out net.glsl"])
def test_commands_write_glsl(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pf.save(load([node("Neg", "x", "y")], {"x": ["n", 2]}), "m.onnx")
    assert RUNNER.invoke(app, command.format("m.onnx").split()).exit_code == 0
    assert "void net(in vec2 x, out vec2 y)" in Path("net.glsl").read_text("utf-8")
