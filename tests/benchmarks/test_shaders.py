"""The benchmark of shaders runs and compares; it asserts nothing about time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from passes.graphs import graph, node

ROOT = Path(__file__).resolve().parents[2]


def network(folder: Path, last: list[Any]) -> Path:
    w = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    fixed = {"w": w, "two": np.array([1, 4 * 900], np.int64)}
    nodes = [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), *last]
    onnx.save(graph(nodes, {"x": [1, 3, 30, 30]}, fixed, "y"), folder / "network.onnx")
    return folder / "network.onnx"


def run(model: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.benchmarks.shaders", "--models", str(model), "--json", str(out), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_a_side_agrees_and_has_another_shape(gl_context: Any, tmp_path: Path) -> None:
    model = network(tmp_path, [node("GlobalAveragePool", "c", "y")])
    sides = ["gpu_compute", "gpu_pixel"] if gl_context.version_code >= 430 else ["gpu_pixel"]
    done = run(model, tmp_path / "out.json", "--rounds", "1", "--driver", "", "--sides", ",".join(sides))
    assert done.returncode == 0, done.stderr
    timings = json.loads((tmp_path / "out.json").read_text())["timings"]
    assert [timing["side"] for timing in timings] == sides
    for timing in timings:
        assert timing["differs"] < 1e-5 and timing["steady"] > 0
        assert timing["new_shape"] > 0 and timing["cpu"].keys() == {"first", "new_shape", "steady"}
    assert all(side in done.stdout for side in sides)


@pytest.mark.slow
def test_a_model_for_one_size_has_no_other_shape(gl_context: Any, tmp_path: Path) -> None:
    model = network(tmp_path, [node("Reshape", "c two", "y")])
    done = run(model, tmp_path / "out.json", "--rounds", "1", "--driver", "", "--sides", "gpu_pixel")
    assert done.returncode == 0, done.stderr
    (timing,) = json.loads((tmp_path / "out.json").read_text())["timings"]
    assert timing["new_shape"] is None and timing["differs"] < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--sides", "nobody"], ["--driver", "nobody", "--sides", "gpu_pixel"]])
def test_wrong_options(options: list[str], tmp_path: Path) -> None:
    done = run(network(tmp_path, [node("Relu", "c", "y")]), tmp_path / "out.json", "--rounds", "1", *options)
    assert done.returncode and "'nobody'" in done.stdout + done.stderr and "Traceback" not in done.stderr
