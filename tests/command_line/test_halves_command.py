"""`--weights` and `--activations`: the commands that run a model keep its numbers in float16 on a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import perframe as pf
from gl.graphs import graph
from perframe.command_line.cli import app

RUNNER = CliRunner()
CHOICES = [("--weights", "float16"), ("--activations", "float16")]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """y = Relu(x @ w) @ w on x of shape (3, 24): weights and a value that are worth being halves."""
    nodes = [("MatMul", ["x", "w"], ["p"]), ("Relu", ["p"], ["r"]), ("MatMul", ["r", "w"], ["y"])]
    weights = np.random.default_rng(2).standard_normal((24, 24)).astype(np.float32)
    pf.save(graph(nodes, {"x": (3, 24)}, constants={"w": weights}), tmp_path / "wide.onnx")
    return tmp_path / "wide.onnx"


def run(command: str, *arguments: object) -> Any:
    return RUNNER.invoke(app, [command, *map(str, arguments)])


@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_halves_are_run_compared_timed_and_warmed_up(
    chosen: tuple[str, str], wide: Path, backend: str, gl_context: Any, tmp_path: Path
) -> None:
    on = ("--backend", backend, *chosen)
    if backend == "cpu":
        for command in ("run", "compare", "warmup"):
            refused = run(command, wide, *on).exception
            assert isinstance(refused, pf.InputError) and "pf.quantize" in str(refused)
        return
    found, whole = (tmp_path / name for name in ("halves.npz", "whole.npz"))
    assert run("run", wide, *on, "--save", found).exit_code == 0
    assert run("run", wide, "--backend", backend, "--save", whole).exit_code == 0
    apart = np.abs(np.load(found)["y"] - np.load(whole)["y"]).max()
    assert 0 < apart < 0.1
    shown = run("compare", wide, *on)
    assert shown.exit_code == 0 and f"output 'y': {apart:.3g} apart" in shown.output
    assert json.loads(run("compare", wide, *on, "--json").output)[-1]["apart"] == pytest.approx(apart)
    assert run("warmup", wide, *on).exit_code == 0
    refused = run("run", wide, "--backend", backend, chosen[0], "half").exception
    assert isinstance(refused, pf.InputError) and "neither 'float32' nor 'float16'" in str(refused)


@pytest.mark.slow
def test_bench_times_halves(wide: Path, gl_context: Any, tmp_path: Path) -> None:
    out = tmp_path / "times.json"
    timed = run("bench", wide, "--backend", "gpu_pixel,cpu", *CHOICES[0], *CHOICES[1], "--rounds", 1, "--json", out)
    report = json.loads(out.read_text())
    half, refused = report["timings"]
    assert {report["settings"][name] for name in ("weights", "activations")} == {"float16"}
    assert half["error"] is None and half["steady"] > 0
    assert timed.exit_code == 1 and "pf.quantize" in refused["error"]
