"""`perframe optimize` and `perframe check`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image
from typer.testing import CliRunner

import perframe as pf
from passes.graphs import graph, node, random
from perframe.command_line.cli import app
from perframe.command_line.commands.optimize import report_of

RUNNER = CliRunner()


def picture() -> onnx.ModelProto:
    """Two convolutions, with an activation that one of them takes, and a copy that is dropped."""
    return graph(
        [
            node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
            node("Relu", "a", "b"),
            node("Identity", "b", "c"),
            node("Conv", "c v", "d"),
            node("Add", "d b0", "y"),
        ],
        {"x": [1, 3, 8, 8]},
        {"w": random(4, 3, 3, 3), "v": random(4, 4, 1, 1), "b0": random(4, 1, 1)},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(picture(), tmp_path / "picture.onnx")
    return tmp_path / "picture.onnx"


def test_a_report_tells_layers_bytes_and_multiply_adds() -> None:
    report = report_of(pf.load(picture()))
    assert (report.before.layers, report.after.layers) == (5, 2)
    assert report.before.multiply_adds == 8 * 8 * 4 * (3 * 9 + 4)
    assert report.after.multiply_adds == report.before.multiply_adds
    assert report.before.bytes == 4 * (4 * 3 * 9 + 4 * 4 + 4)
    changes = {one.name: one.changes for one in report.passes if one.changes}
    assert changes["remove_noops"] == changes["fuse_bias"] == changes["fuse_activation"] == 1
    assert [one.number for one in report.passes if one.changes] == [*range(1, 1 + len(changes))]


def test_open_dims_count_as_one() -> None:
    def report(batch: int | str) -> int | None:
        model = graph([node("MatMul", "x w", "y")], {"x": [batch, 6]}, {"w": random(6, 5)})
        return report_of(pf.load(model)).after.multiply_adds

    assert report("batch") == report(1) == 30


def test_a_report_tells_what_was_refused_and_why() -> None:
    model = graph(
        [node("Transpose", "x", "t", perm=[1, 0]), node("MatMul", "w t", "y"), node("Relu", "t", "z")],
        {"x": [7, 6]},
        {"w": random(5, 6)},
        "y z",
    )
    refusals = report_of(pf.load(model)).refusals
    assert [str(refusal) for refusal in refusals["fuse_transposes"]] == [
        "y (MatMul): other layers read the result of 't' too"
    ]


def test_a_refusal_stands_where_a_later_pass_fuses_the_layer() -> None:
    """The pass that refused does not match the layer in its next run, since it has an epilogue then."""
    nodes = [
        *(node("Transpose", "x", "t", perm=[1, 0]), node("MatMul", "w t", "m")),
        *(node("Exp", "m", "y"), node("Relu", "t", "z")),
    ]
    model = pf.load(graph(nodes, {"x": [7, 6]}, {"w": random(5, 6)}, "y z"))
    assert [layer.op for layer in model.layers if layer.epilogue] == ["MatMul"]
    (refusal,) = report_of(model).refusals["fuse_transposes"]
    assert "other layers read the result of 't' too" in refusal.reason


@pytest.mark.parametrize("count", range(5))
def test_passes_stop_after_a_number_of_changes(count: int) -> None:
    report = report_of(pf.load(picture(), stop_after=count))
    assert len([one for one in report.passes if one.changes]) == min(count, 3)


def test_optimize_explains_itself(path: Path) -> None:
    result = RUNNER.invoke(app, ["optimize", str(path), "--explain"])
    assert result.exit_code == 0, result.output
    assert "5 layers" in result.output and "2 layers" in result.output and "after the passes" in result.output
    assert "fuse_bias" in result.output


def test_optimize_speaks_json(path: Path) -> None:
    result = RUNNER.invoke(app, ["optimize", str(path), "--json", "--stop-after", "1"])
    report = json.loads(result.output)
    assert report["before"]["layers"] == 5
    assert [one["name"] for one in report["passes"] if one["changes"]] == ["remove_noops"]


def test_optimize_shows_how_a_backend_prepares_the_model(path: Path) -> None:
    result = RUNNER.invoke(app, ["optimize", str(path), "--backend", "cpu", "--explain"])
    assert result.exit_code == 0 and "channels_last" in result.output.partition("prepared for cpu")[2]
    report = json.loads(RUNNER.invoke(app, ["optimize", str(path), "--backend", "gpu_pixel", "--json"]).output)
    assert "channel_blocks" in [one["name"] for one in report["prepared"]["passes"]]
    assert RUNNER.invoke(app, ["optimize", str(path), "--backend", "gpu"]).exit_code == 2


def test_check_tells_where_a_model_runs(path: Path) -> None:
    result = RUNNER.invoke(app, ["check", str(path), "--backend", "cpu", "--json"])
    (found,) = json.loads(result.output)
    assert result.exit_code == 0
    assert found["error"] is None and set(found["layers"]) == {"cpu"} and not found["fallbacks"]
    assert found["weights"] == 4 * (4 * 3 * 9 + 4 * 4 + 4)


def test_check_tells_what_falls_back(tmp_path: Path) -> None:
    node_of_doubles = helper.make_node("Erf", ["x"], ["y"], "erf")
    doubles = helper.make_graph(
        [node_of_doubles],
        "doubles",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [3])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [3])],
    )
    onnx.save(
        helper.make_model(doubles, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "d.onnx"
    )
    call = ["check", str(tmp_path / "d.onnx"), "--backend", "gpu_compute"]
    result = RUNNER.invoke(app, call)
    assert result.exit_code == 0 and "erf (Erf) runs on the CPU" in result.output.replace("\n", " ")
    assert RUNNER.invoke(app, [*call, "--strict"]).exit_code == 1


def test_check_fails_for_a_model_that_does_not_run(tmp_path: Path) -> None:
    model = graph([node("Conv", "x w", "y")], {"x": [1, 3, "height", 8]}, {"w": random(4, 3, 5, 5)})
    onnx.save(model, tmp_path / "small.onnx")
    call = ["check", str(tmp_path / "small.onnx"), "--backend", "cpu"]
    failed = RUNNER.invoke(app, [*call, "--dims", "height=2"])
    assert failed.exit_code == 1 and "do not fit with height = 2 (5 fits)" in str(failed.exception)
    assert RUNNER.invoke(app, [*call, "--input", "x=random:1x3x9x8"]).exit_code == 0


def test_outputs_are_chosen_by_name() -> None:
    model = pf.load(picture(), outputs=["b"])
    assert model.output_names == ["b"] and len(model.layers) == 1
    assert "w" in next(iter(model.constants)) or len(model.constants) == 1
    with pytest.raises(pf.ModelError, match="makes no value named 'nothing'"):
        pf.load(picture(), outputs=["nothing"])
    with pytest.raises(pf.ModelError, match="outputs are names"):
        pf.load(picture(), outputs="b")


def test_a_real_model_ends_with_fewer_layers(shared: Path) -> None:
    report = report_of(pf.load(shared / "models" / "ultraface_rfb_320.onnx"))
    assert report.after.layers < report.before.layers / 2
    assert report.after.multiply_adds == report.before.multiply_adds == 100_418_560


def test_a_picture_needs_no_name_and_is_normalised(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 6, 3), [0, 51, 255], np.uint8)).save(tmp_path / "flat.png")
    onnx.save(graph([node("Identity", "x", "y")], {"x": [1, 3, 2, 5]}), tmp_path / "same.onnx")
    call = [
        "run",
        str(tmp_path / "same.onnx"),
        "--input",
        str(tmp_path / "flat.png"),
        "--save",
        str(tmp_path / "y.npz"),
    ]
    for options, wanted in (
        ([], [0, 0.2, 1]),
        (["--scale", "255", "--mean", "127", "--std", "128"], [-127 / 128, -76 / 128, 1]),
        (["--mean", "0,0.2,0.5", "--std", "1,1,0.25"], [0, 0, 2]),
    ):
        result = RUNNER.invoke(app, [*call, *options])
        assert result.exit_code == 0, result.output
        np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"][0, :, 1, 1], wanted, atol=1e-6)
    assert RUNNER.invoke(app, [*call, "--mean", "1,2"]).exit_code == 1
    assert RUNNER.invoke(app, [*call, "--std", "0"]).exit_code == 1


def test_operators_are_chosen_by_name() -> None:
    result = RUNNER.invoke(app, ["operators", "conv", "Gelu", "--json"])
    assert [row["name"] for row in json.loads(result.output)] == ["Conv", "Gelu"]
    assert RUNNER.invoke(app, ["operators", "Covn"]).exit_code == 2
    assert RUNNER.invoke(app, ["--version"]).output.startswith("perframe ")
