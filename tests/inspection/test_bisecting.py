"""A pass that changes what a model computes is found by its name, at load and when a backend prepares the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import perframe as pf
from inspection.test_comparison import X, network
from perframe.command_line.cli import app
from perframe.inspection.bisecting import culprit, outputs_of
from perframe.passes.fuse import fuse_activation, fuse_addition
from perframe.passes.layout import channels_last

RUNNER = CliRunner()


def _spoiling(run: Callable[..., int]) -> Callable[..., int]:
    """A pass that spoils a constant when it changes something. It adds a new one: arrays are shared."""

    def spoilt(model: pf.Model, evaluate: Any) -> int:
        changes = run(model, evaluate)
        if changes:
            layer = next(layer for layer in model.layers if layer.op == "Conv" and layer.epilogue)
            layer.set_input(1, model.add_constant("spoilt", layer.w.constant * np.float32(1.01)))
        return changes

    return spoilt


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(network(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_pass_at_load_is_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = outputs_of(pf.load(path, optimize=False), {"x": X}, "cpu", None)
    assert culprit(partial(pf.load, path), {"x": X}, wanted) is None
    monkeypatch.setattr(fuse_activation, "run", _spoiling(fuse_activation.run))
    found = culprit(partial(pf.load, path), {"x": X}, wanted)
    assert found is not None and (found.name, found.backend) == ("fuse_activation", "")
    assert found.layers == ("first (Conv)",) and "'fuse_activation'" in str(found) and "first (Conv)" in str(found)
    before = pf.load(path, stop_after=found.number - 1)
    before.preparations = 0  # the pass runs there, too
    right = outputs_of(before, {"x": X}, "cpu", None)
    assert all(np.allclose(right[name], wanted[name], rtol=1e-4, atol=1e-5) for name in wanted)


def test_a_pass_that_prepares_models_is_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = outputs_of(pf.load(path, optimize=False), {"x": X}, "cpu", None)
    monkeypatch.setattr(fuse_addition, "run", _spoiling(fuse_addition.run))
    found = culprit(partial(pf.load, path), {"x": X}, wanted)
    assert found is not None and (found.name, found.backend) == ("fuse_addition", "cpu")
    assert "prepares models for cpu" in str(found)


def test_what_is_wrong_without_passes_is_no_fault_of_one(path: Path) -> None:
    wanted = {name: value + 1 for name, value in outputs_of(pf.load(path), {"x": X}, "cpu", None).items()}
    assert culprit(partial(pf.load, path), {"x": X}, wanted) is None


@pytest.mark.slow
@pytest.mark.parametrize("against", ["unoptimized", "onnxruntime", "file"])
def test_the_command_names_the_pass(against: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime runs the file, and not what perframe made of it; another file may hold the same network."""
    other = str(path.with_name("other.perframe")) if against == "file" else against
    if against == "file":
        pf.save(pf.load(path), other)
    call = ["compare", str(path), "--against", other]
    assert RUNNER.invoke(app, call).exit_code == 0
    monkeypatch.setattr(fuse_activation, "run", _spoiling(fuse_activation.run))
    shown = RUNNER.invoke(app, call)
    assert shown.exit_code == 1 and "the pass 'fuse_activation' is at fault" in " ".join(shown.output.split())
    rows = json.loads(RUNNER.invoke(app, [*call, "--json"]).output)
    assert {row["culprit"]["name"] for row in rows if "culprit" in row} == {"fuse_activation"}
    monkeypatch.undo()
    monkeypatch.setattr(fuse_addition, "run", _spoiling(fuse_addition.run))
    shown = RUNNER.invoke(app, call)
    assert shown.exit_code == 1 and "'fuse_addition', which prepares models for cpu" in " ".join(shown.output.split())


def test_a_pass_that_fails_is_named_by_its_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(model: pf.Model, _evaluate: Any) -> int:
        model.remove(model.layers[0])
        raise KeyError("first")

    monkeypatch.setattr(fuse_activation, "run", broken)
    with pytest.raises(pf.PassError, match=r"the pass 'fuse_activation'.*KeyError: 'first'.*which no earlier layer"):
        pf.load(path)
    shown = RUNNER.invoke(app, ["compare", str(path), "--against", "unoptimized"])
    assert shown.exit_code != 0 and "fuse_activation" in str(shown.exception)
    assert len(pf.load(path, optimize=False).layers) == 6
    monkeypatch.undo()
    monkeypatch.setattr(channels_last, "run", broken)
    with pytest.raises(pf.PassError, match=r"'channels_last', which runs .*to prepare it for cpu"):
        pf.Worker(pf.load(path))
