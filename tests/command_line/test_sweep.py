"""`tools/sweep.py`: what it measures, and that no model and no interruption stops it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from agreement import agree, in_their_order
from onnx import TensorProto, helper, numpy_helper

from perframe.command_line.contest import Limits, Process
from perframe.command_line.sources import likely_arrays, likely_dims
from perframe.errors import BackendError
from perframe.inspection.comparison import relative_difference, relative_differences
from small import load, node

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def save(path: Path, *nodes: onnx.NodeProto, constants: dict[str, Any] | None = None) -> Path:
    """A model from x, of shape (batch, 4), to y."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    path.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def endless() -> onnx.NodeProto:
    """A loop of so many steps that no runtime ends it."""
    values = (("step", TensorProto.INT64, []), ("goes_on", TensorProto.BOOL, []), ("state", TensorProto.FLOAT, [1, 4]))
    body = helper.make_graph(
        [helper.make_node("Identity", ["goes_on"], ["still"]), helper.make_node("Sin", ["state"], ["next"])],
        "body",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in values],
        [
            helper.make_tensor_value_info(name, kind, None)
            for name, kind in (("still", TensorProto.BOOL), ("next", TensorProto.FLOAT))
        ],
    )
    return helper.make_node("Loop", ["steps", "", "x"], ["y"], body=body)


def sweep(folder: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    command = [sys.executable, "tools/sweep.py", str(folder), "--rounds", "1", *options]
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads((folder / "sweep.json").read_text())["models"], done.stdout


def test_a_sweep_compares_all_models_of_a_folder(tmp_path: Path, backend: str) -> None:
    save(tmp_path / "a.onnx", node("Relu", "x", "y"))
    _, first, _ = sweep(tmp_path, "--backend", "cpu")
    save(tmp_path / "deeper" / "b.onnx", node("MatMul", "x w", "y"), constants={"w": np.ones((4, 3), np.float32)})
    doubles = node("Cast", "x", "d", to=TensorProto.DOUBLE), node("Sin", "d", "s"), node("Cast", "s", "y", to=1)
    save(tmp_path / "doubles.onnx", *doubles)
    status, models, shown = sweep(tmp_path, "--backend", f"cpu,{backend}", "--dims", "batch=3")
    assert status == 0 and list(models) == ["a.onnx", "deeper/b.onnx", "doubles.onnx"]
    for name, model in models.items():
        assert set(model["sides"]) == {"cpu", backend} and model["peer"]["steady"] > 0 and model["noise"] <= 1e-5
        found = model["sides"][backend]
        assert name in shown and found["agrees"] and found["difference"] <= 1e-4
        assert found["ratio"] > 0 and found["memory"] > 1 << 20
        assert found["strict"] == (backend == "cpu" or name != "doubles.onnx")
    assert models["a.onnx"]["sides"]["cpu"] == first["a.onnx"]["sides"]["cpu"], "a result was not left alone"
    assert ("'s' (Sin) runs on the CPU instead of" in shown) == (backend != "cpu")
    _, _, table = sweep(tmp_path, "--backend", f"cpu,{backend}", "--dims", "batch=3", "--markdown")
    rows = {cells[0]: cells[5:] for line in table.splitlines()[2:] if (cells := line.strip("| ").split(" | "))}
    for name, state in (("deeper/b", "strict"), ("doubles", "falls back")):
        assert rows[name] == [state if backend == one else "–" for one in ("gpu_compute", "gpu_pixel")]


def test_a_broken_file_is_an_error_and_the_sweep_goes_on(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    save(tmp_path / "unknown.onnx", helper.make_node("Bessel", ["x"], ["y"]))
    save(tmp_path / "whole.onnx", node("Relu", "x", "y"))
    status, models, shown = sweep(tmp_path, "--backend", "cpu")
    assert status == 1 and models["whole.onnx"]["sides"]["cpu"]["agrees"]
    for name, kind in (("broken.onnx", "ModelError"), ("unknown.onnx", "UnsupportedOperatorError")):
        found = models[name]["sides"]["cpu"]
        assert found["typed"] and found["error"].startswith(kind) and found["error"].splitlines()[0] in shown


def test_a_model_that_takes_too_long_is_an_error_and_the_sweep_goes_on(tmp_path: Path) -> None:
    save(tmp_path / "endless.onnx", endless(), constants={"steps": np.array(1 << 60)})
    save(tmp_path / "whole.onnx", node("Relu", "x", "y"))
    status, models, _ = sweep(tmp_path, "--backend", "cpu", "--seconds", "15")
    assert "took more than 15 s" in models["endless.onnx"]["peer"]["error"]
    assert models["whole.onnx"]["sides"]["cpu"]["agrees"] and status == 1


def test_results_of_before_are_made_again_only_if_asked_for(tmp_path: Path) -> None:
    save(tmp_path / "a.onnx", node("Relu", "x", "y"))
    first, second, third = (sweep(tmp_path, "--backend", "cpu", *more)[1] for more in ((), (), ("--again",)))
    assert first == second != third


# --- the process of a side ---


@pytest.fixture
def process() -> Iterator[Process]:
    made = Process("cpu", Limits(seconds=10, memory=1 << 32))
    yield made
    made.close()


def test_a_side_that_hangs_is_ended(process: Process, tmp_path: Path) -> None:
    model = save(tmp_path / "a.onnx", node("Relu", "x", "y"))
    np.savez(tmp_path / "feed.npz", x=np.ones((2, 4), np.float32))
    process.ask("open", side="onnxruntime", model=str(model), threads=1)
    with pytest.raises(BackendError, match="took more than 10 s when asked to run"):
        process.ask("run", feed=str(tmp_path / "feed.npz"), times=10**9)
    with pytest.raises(BackendError, match="ended with signal SIGKILL"):
        process.ask("memory")


def test_a_side_that_takes_too_much_memory_fails(process: Process, tmp_path: Path) -> None:
    model = save(tmp_path / "a.onnx", node("Expand", "x shape", "y"), constants={"shape": np.array([1 << 30, 1, 4])})
    np.savez(tmp_path / "feed.npz", x=np.ones((1, 4), np.float32))
    process.ask("open", side="onnxruntime", model=str(model), threads=1)
    with pytest.raises(BackendError, match=r"(?i)alloc|memory"):
        process.ask("run", feed=str(tmp_path / "feed.npz"), times=1)


def test_a_side_that_crashes_is_an_error(process: Process) -> None:
    os.kill(process._child.pid, signal.SIGSEGV)
    with pytest.raises(BackendError, match="ended with signal SIGSEGV when asked to memory"):
        process.ask("memory")


# --- inputs and differences ---


def test_token_ids_are_rows_of_the_table_that_the_model_shows() -> None:
    nodes = [
        node("Unsqueeze", "ids axes", "more"),
        node("Gather", "table more", "rows"),
        node("Cast", "keep_mask", "kept", to=1),
    ]
    model = load(
        [*nodes, node("Add", "rows kept", "y")],
        {"ids": ["batch", "sequence"], "keep_mask": ["batch", 1]},
        constants={"table": np.zeros((40, 1), np.float32), "axes": np.array([2])},
        dtypes={"ids": "int64", "keep_mask": "int64"},
        optimize=False,
    )
    dims = likely_dims(model.inputs)
    assert dims == {"batch": 1, "sequence": 128}
    fed = likely_arrays(model, dims)
    assert fed["ids"].shape == (1, 128) and fed["ids"].dtype == np.int64
    assert 20 < fed["ids"].max() < 40 and fed["ids"].min() >= 0 and (fed["keep_mask"] == 1).all()


@pytest.mark.parametrize(
    ("got", "wanted", "apart"),
    [
        ([1, 2], [1, 4], 0.5),
        ([np.nan, 1], [np.nan, 1], 0),
        ([np.inf, 1], [np.inf, 2], 0.5),
        ([np.nan, 1], [0, 1], np.inf),
        ([np.inf, 1], [-np.inf, 1], np.inf),
        ([], [], 0),
        ([0, 1e-3], [0, 0], 1e-3),
    ],
)
def test_differences_are_relative_to_the_largest_finite_value(got: Any, wanted: Any, apart: float) -> None:
    assert relative_difference(np.array(got), np.array(wanted)) == pytest.approx(apart)


def test_outputs_agree_within_the_tolerance_or_twice_the_noise() -> None:
    assert agree([1e-5, 9e-5]) and not agree([1e-5, 2e-4])
    assert agree([1e-5, 2e-4], [0, 1e-4]) and not agree([1e-5, 2e-4], [1e-4, 0])
    for others in ([], [np.ones(2)]):
        with pytest.raises(BackendError):
            relative_differences([np.ones(1)], others)


def test_detections_of_equal_scores_may_change_places() -> None:
    boxes, scores, classes = (
        np.arange(20.0).reshape(5, 4),
        np.array([0.9, 0.8, 0.5, 0.5, 0.1]),
        np.array([3, 1, 2, 7, 1]),
    )
    other = [0, 1, 3, 2, 4]
    got = [boxes[other] + 1e-6, scores, classes[other]]
    assert not agree(relative_differences(got, [boxes, scores, classes]))
    ordered = in_their_order(got, [boxes, scores, classes])
    assert ordered is not None and agree(relative_differences(ordered, [boxes, scores, classes]))
    wrong = [got[0], got[1], np.array([3, 1, 2, 2, 1])]
    ordered = in_their_order(wrong, [boxes, scores, classes])
    assert ordered is None or not agree(relative_differences(ordered, [boxes, scores, classes]))
    assert in_their_order([boxes], [boxes]) is None and in_their_order([boxes, scores[:1]], [boxes, scores]) is None
