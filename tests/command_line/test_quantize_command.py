"""`perframe quantize`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import perframe as pf
from passes.graphs import graph, node, random
from perframe.command_line.calibration import calibration_data
from perframe.command_line.cli import app
from perframe.command_line.sources import Normalization, parse_numbers
from perframe.errors import InputError
from quantization.networks import pictures, residual, weights

RUNNER = CliRunner()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pf.save(pf.load(residual()), tmp_path / "net.perframe")
    return tmp_path / "net.perframe"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.savez(tmp_path / "data.npz", x=np.concatenate([one["x"] for one in pictures(3)]))
    return tmp_path / "data.npz"


def run(*arguments: object) -> Any:
    return RUNNER.invoke(app, ["quantize", *map(str, arguments)])


@pytest.mark.slow  # on a cold cache
@pytest.mark.parametrize("kind", ["float16", "uint8", "int8", "int4"])
def test_weights_alone(kind: str, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.onnx"
    done = run(path, out, "--weights", kind)
    assert done.exit_code == 0, done.output
    assert f"small.onnx: {out.stat().st_size:,} bytes; constants 10.0 KiB →" in done.output
    assert "errors on random inputs" in done.output
    assert re.search(r"output y: \d", done.output)
    assert pf.load(out).output_names == ["y"]


@pytest.mark.slow  # runs the network on each sample
def test_with_data(path: Path, data: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "bytes.perframe", tmp_path / "errors.html"
    done = run(path, out, "--static", data, "--exclude", "c", "--method", "mse", "--html", page, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["runs"], found["inputs"], found["bytes"]) == (3, "calibration", out.stat().st_size)
    errors = [one["relative"] for one in found["layers"]]
    assert errors == sorted(errors, reverse=True)
    assert 0 < found["outputs"]["y"] < 0.05
    assert {one["output"] for one in found["layers"]} >= {"b", "g", "h", "y"}
    assert pf.load(out).constants["k1"].dtype == np.float32
    assert '"error"' in page.read_text()


def test_layers_that_are_left_out_are_told(path: Path, data: Path, tmp_path: Path) -> None:
    done = run(path, tmp_path / "bytes.onnx", "--static", data, "--exclude", "a")
    assert "1 layers keep weights of float32: a" in done.output


def test_pictures_are_read_as_the_input_wants(tmp_path: Path) -> None:
    shades = random(20, 30, 3, seed=1)
    pixels = np.clip(shades * 60 + 128, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.png")
    model = pf.load(graph([node("Conv", "x k", "y")], {"x": ["n", 3, 20, 30]}, {"k": weights(8, 3, 3, 3, seed=1)}))
    how = Normalization(255.0, (127.0, 126.0, 125.0), (128.0,))
    (found,) = calibration_data(str(tmp_path), model, how)
    wanted = (pixels.astype(np.float32) - [127, 126, 125]) / 128
    np.testing.assert_allclose(found, wanted.transpose(2, 0, 1)[None], atol=1e-5)
    pf.save(model, tmp_path / "net.onnx")
    options = ("--scale", 255, "--mean", "127,126,125", "--std", 128)
    done = run(tmp_path / "net.onnx", tmp_path / "out.onnx", "--static", tmp_path, *options)
    assert done.exit_code == 0, done.output
    assert "errors on 1 run of calibration data" in done.output
    small = pf.load(tmp_path / "out.onnx")
    np.testing.assert_allclose(small.constants["x/scale"], np.ptp(wanted) / 255, rtol=1e-5)


def test_channels_may_be_last(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 5, 3), (51, 102, 204), np.uint8)).save(tmp_path / "one.png")
    model = pf.load(graph([node("Relu", "x", "y")], {"x": [1, 4, 5, 3]}))
    (found,) = calibration_data(str(tmp_path / "one.png"), model, Normalization(mean=(0.2, 0.4, 0.8), std=(2.0,)))
    np.testing.assert_allclose(found, np.zeros((1, 4, 5, 3)), atol=1e-6)


@pytest.mark.parametrize(
    ("arrays", "shapes"),
    [
        ({"x": (1, 8, 12, 10)}, [(1, 8, 12, 10)]),
        ({"x": (4, 8, 12, 10)}, [(1, 8, 12, 10)] * 4),
        ({"x": (3, 1, 8, 12, 10)}, [(1, 8, 12, 10)] * 3),
    ],
)
def test_runs_in_a_file(arrays: dict[str, tuple[int, ...]], shapes: list[tuple[int, ...]], tmp_path: Path) -> None:
    made = {name: random(*shape) for name, shape in arrays.items()}
    np.savez(tmp_path / "d.npz", **made)
    np.save(tmp_path / "d.npy", made["x"])
    for name in ("d.npz", "d.npy"):
        found = list(calibration_data(str(tmp_path / name), pf.load(residual()), Normalization()))
        assert [one["x"].shape for one in found] == shapes
        np.testing.assert_array_equal(np.concatenate([one["x"] for one in found]).ravel(), made["x"].ravel())


def test_runs_from_a_function(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "typical_inputs.py").write_text(
        "import numpy as np\n"
        "def runs():\n    for seed in range(5):\n"
        "        yield {'x': np.random.default_rng(seed).normal(size=(1, 8, 12, 10)).astype(np.float32)}\n"
        "def nothing(): return None\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    done = run(path, "out.onnx", "--static", "typical_inputs:runs", "--runs", 4)
    assert "errors on 4 runs of calibration data" in done.output
    for name, said in {
        "typical_inputs:nothing": "returns NoneType: yield a dict of arrays for each run",
        "typical_inputs:number": "is int, not a function",
        "typical_inputs:other": "has no attribute 'other'",
        "no_such_module:runs": "No module named 'no_such_module'",
    }.items():
        with pytest.raises(InputError, match=re.escape(said)):
            calibration_data(name, pf.load(path), Normalization())


def two_inputs() -> pf.Model:
    return pf.load(graph([node("Add", "x z", "y")], {"x": [2, 3], "z": [2, 3]}))


def test_wrong_data(tmp_path: Path) -> None:
    def refuse(source: object, said: str, model: pf.Model | None = None, **how: Any) -> None:
        with pytest.raises(InputError, match=said):
            list(calibration_data(str(source), model or pf.load(residual()), Normalization(**how)))

    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 cut")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    np.savez(tmp_path / "other.npz", z=np.zeros(3))
    np.savez(tmp_path / "uneven.npz", x=np.zeros((4, 3)), z=np.zeros((2, 3)))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "empty.png")
    refuse(tmp_path / "empty", "holds no pictures")
    refuse(tmp_path / "gone", "there is no calibration data .*: it is a folder of pictures, a file")
    refuse(tmp_path / "cut.npz", "cannot be read")
    refuse(tmp_path / "objects.npy", "cannot be read: Object arrays")
    refuse(tmp_path / "other.npz", "holds z, and the inputs are x")
    refuse(tmp_path / "uneven.npz", "different numbers of runs for the inputs: x 2, z 1", two_inputs())
    refuse(tmp_path / "empty.png", "input 'x' has shape .* which is not that of one picture")
    refuse(tmp_path / "empty.png", "pictures are data of one input, and .* has x, z: use an .npz", two_inputs())
    picture = pf.load(graph([node("Relu", "x", "y")], {"x": [1, 3, 5, 5]}))
    refuse(tmp_path / "bad.png", "bad.png cannot be read", picture)
    refuse(tmp_path / "empty.png", "--mean has 2 numbers, and a picture has 3 channels", picture, mean=(1.0, 2.0))


@pytest.mark.parametrize(
    ("text", "option", "said"),
    [
        ("a", "--mean", "--mean takes a number, or one for each channel"),
        ("nan", "--mean", "--mean takes finite numbers, not 'nan'"),
        ("1,0", "--std", "--std takes finite numbers other than 0, not '1,0'"),
    ],
)
def test_wrong_numbers(text: str, option: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_numbers(text, option)


def test_random_inputs_may_not_fit(tmp_path: Path) -> None:
    """No size that a command would choose gives rows of 1,297. The model is written all the same."""
    nodes = [node("Conv", "x k", "c"), node("Reshape", "c rows", "y")]
    constants = {"k": weights(32, 4, 5, seed=1), "rows": np.array([-1, 1297])}
    model = pf.load(graph(nodes, {"x": [1, 4, "time"]}, constants))
    pf.save(model, tmp_path / "net.onnx")
    done = run(tmp_path / "net.onnx", tmp_path / "out.onnx")
    assert done.exit_code == 0
    assert "errors are not known, for random inputs do not fit: layer 'y' (Reshape)" in done.output
    assert [*map(str, pf.load(tmp_path / "out.onnx").inputs)] == [*map(str, model.inputs)]
    failed = run(tmp_path / "net.onnx", tmp_path / "out.onnx", "--json")
    assert "failure" in json.loads(failed.stdout)
    done = run(tmp_path / "net.onnx", tmp_path / "out.onnx", "--dims", "time=1301")
    assert "output y: " in done.output


def test_a_refused_model_leaves_the_old_file(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    out.write_bytes(b"before")
    done = run(path, out, "--exclude", "nothing like it")
    assert isinstance(done.exception, InputError)
    assert out.read_bytes() == b"before"
