"""The models that ship with perframe, by their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import perframe as pf
from perframe.command_line.cli import app
from perframe.importers.shipped import MODELS

RUNNER = CliRunner()


@pytest.mark.parametrize("name", MODELS)
def test_each_runs_by_its_name(name: str) -> None:
    model = pf.load(name)
    assert len(pf.inspect(name).layers) == len(model.layers)
    shapes = [[dim if isinstance(dim, int) else 8 for dim in value.shape or ()] for value in model.inputs]
    with pf.Worker(name) as worker:
        for fill in (1, 0):  # zeros: a black picture, or a muted microphone
            feeds = {
                value.name: np.full(shape, 1 if value.name == "mask" else fill, value.dtype.numpy)
                for value, shape in zip(model.inputs, shapes, strict=True)
            }
            worker.schedule(feeds)
            for output in model.outputs:
                assert np.isfinite(worker.peek_output(output.name).numpy()).all(), (output.name, fill)


def test_a_file_of_that_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("painter").write_bytes(MODELS["life"].path.read_bytes())
    assert pf.load("painter").inputs[0].name == "state"


@pytest.mark.parametrize("load", [pf.load, pf.Worker, lambda name: pf.run(name, {})])
def test_an_unknown_name_lists_the_known_ones(load: Any) -> None:
    said = r"no model or file 'paintr'; did you mean painter\? models that ship.*agents, .*painter"
    with pytest.raises(pf.MissingFileError, match=said) as told:
        load("paintr")
    assert str(Path(__file__).parents[2]) not in str(told.value)


@pytest.mark.parametrize("load", [pf.load, lambda name: RUNNER.invoke(app, ["inspect", name]).exception])
def test_a_missing_file_names_those_like_it(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.onnx").write_bytes(b"")
    Path("folder").mkdir()
    for name, said in (("tinny.onnx", "did you mean tiny.onnx?"), ("folder", "'folder' is a folder")):
        try:
            error = load(name)
        except pf.MissingFileError as raised:
            error = raised
        assert isinstance(error, pf.MissingFileError) and said in str(error)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "b" * 5000 + ".onnx", ""])
def test_odd_names_are_typed_errors(name: str) -> None:
    with pytest.raises(pf.ModelError):
        pf.load(name)


def test_the_command_line_lists_and_takes_them() -> None:
    listed = json.loads(RUNNER.invoke(app, ["models", "--json"]).stdout)
    assert [one["name"] for one in listed] == list(MODELS)
    assert all(one["bytes"] > 1000 and one["license"] and one["inputs"] for one in listed)
    assert "painter: repaints" in RUNNER.invoke(app, ["models"]).stdout
    done = RUNNER.invoke(app, ["run", "digits", "--backend", "cpu", "--json"])
    assert done.exit_code == 0, done.output
    done = RUNNER.invoke(app, ["inspect", "paintr"])
    assert done.exit_code == 1
    assert isinstance(done.exception, pf.MissingFileError)
    assert "shared" not in str(done.exception)


def test_a_film_takes_one(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (32, 24), (200, 30, 30)).save(tmp_path / "red.png")
    done = pf.process(tmp_path / "red.png", tmp_path / "out", "painter", backend="cpu")
    assert len(list((tmp_path / "out").iterdir())) == 1
    assert done.pictures == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("painter.onnx", "; did you mean painter?"),
        ("paintr.perframe", "; did you mean painter?"),
        ("mines.onnx", "; did you mean mine.onnx?"),
        ("mine.tflite", "; did you mean mine.onnx?"),
        ("other.onnx", ""),
    ],
)
def test_names_are_compared_without_suffixes(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.onnx").touch()
    with pytest.raises(pf.MissingFileError) as told:
        pf.load(name)
    assert str(told.value) == f"there is no model file {name!r} (looked in {str(tmp_path)!r}){said}"


def test_an_absolute_path_was_looked_for_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(pf.MissingFileError) as told:
        pf.load(tmp_path / "nothing.onnx")
    assert str(told.value) == f"there is no model file {str(tmp_path / 'nothing.onnx')!r}"


@pytest.mark.parametrize("kind", [str, Path])
def test_a_tilde_is_the_folder_of_the_user(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "mine.onnx").write_bytes(MODELS["life"].path.read_bytes())
    assert pf.load(kind("~/mine.onnx")).inputs[0].name == "state"
    with pytest.raises(pf.MissingFileError) as told:
        pf.load(kind("~/other.onnx"))
    assert str(told.value) == f"there is no model file {str(tmp_path / 'other.onnx')!r}"
