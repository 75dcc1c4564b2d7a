"""The command line as users meet it: its output, its files and its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from perframe.command_line import cli
from perframe.command_line.commands import demo, doctor
from perframe.command_line.sources import input_arrays, named_model, parse_dims, random_array
from perframe.command_line.terminal import seconds_text
from perframe.errors import InputError, ModelError
from perframe.importers.light import light_model
from perframe.safety.wording import bytes_text
from perframe.tensor import DataType


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def perframe(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs `perframe ARGS...` in this process."""

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["perframe", *map(str, arguments)])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        captured = capfd.readouterr()
        return Outcome(int(ending.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = Relu(x @ w + b) on x of shape (batch, 4), after an Identity that the passes remove."""
    weights = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["x"], ["same"], "copy"),
            helper.make_node("MatMul", ["same", "w"], ["product"], "multiply"),
            helper.make_node("Add", ["product", "b"], ["sum"], "shift"),
            helper.make_node("Relu", ["sum"], ["y"], "clip"),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.ones(3, np.float32), "b")],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_the_command_line_itself_loads_nothing_heavy() -> None:
    code = "import sys, perframe.command_line.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "numba", "onnx", "moderngl", "glfw", "PIL"} & set(loaded)


def test_help_names_every_command(perframe: Command) -> None:
    outcome = perframe("--help")
    assert outcome.status == 0
    assert all(command in outcome.out for command in ("run", "inspect", "bench", "doctor", "demo"))


def test_run_prints_and_saves_outputs(perframe: Command, model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    outcome = perframe("run", model, "--input", f"x={tmp_path / 'x.npy'}", "--save", tmp_path / "out.npz", "--json")
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)["outputs"]["y"]
    saved = np.load(tmp_path / "out.npz")["y"]
    assert report["shape"] == [2, 3] and report["dtype"] == "float32"
    assert report["max"] == pytest.approx(saved.max()) and "random" not in outcome.err
    told = perframe("run", model)
    assert "y" in told.out and "random inputs: x (set them with --input x=FILE)" in told.err


def test_run_is_the_same_on_every_backend(perframe: Command, model: Path, backend: str) -> None:
    outcome = perframe("run", model, "--backend", backend, "--dims", "batch=5", "--seed", 3, "--json", "--strict")
    assert outcome.status == 0, outcome.err
    reference = perframe("run", model, "--dims", "batch=5", "--seed", 3, "--json")
    ours, expected = (json.loads(text)["outputs"]["y"] for text in (outcome.out, reference.out))
    assert ours["shape"] == [5, 3]
    assert ours["mean"] == pytest.approx(expected["mean"], rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["run", "nowhere"], 1, "there is no model or file 'nowhere'"),
        (["run", "{model}", "--input", "z=1"], 1, "the model's inputs are: x"),
        (["run", "{model}", "--input", "x=missing.npy"], 1, "there is no file 'missing.npy'"),
        (["run", "{model}", "--input", "x=random:2x5"], 1, "x"),
        (["run", "{model}", "--dims", "batch"], 1, "NAME=NUMBER"),
        (["run", "{model}", "--backend", "npu"], 2, "not one of auto, cpu"),
        (["run"], 2, "Missing argument"),
        (["optimize", "{model}", "small.onnx"], 2, "options with values are --out OUT"),
        (["bench", "{model}", "--against", "nobody"], 2, "not one of onnxruntime"),
        (["demo", "nothing"], 2, "there is no demo 'nothing'"),
    ],
)
def test_a_mistake_is_one_message(
    perframe: Command, model: Path, arguments: Sequence[str], status: int, message: str
) -> None:
    outcome = perframe(*(argument.format(model=model) for argument in arguments))
    assert outcome.status == status
    assert message in " ".join(outcome.err.replace("│", " ").split())
    assert "Traceback" not in outcome.err


def test_debug_shows_where_an_error_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["perframe", "--debug", "run", "nowhere"])
    with pytest.raises(ModelError, match="nowhere"):
        cli.main()


def test_inspect_shows_layers_and_the_work_of_passes(perframe: Command, model: Path) -> None:
    facts = json.loads(perframe("inspect", model, "--json").out)
    assert facts["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}]
    assert facts["operators"]["Identity"] == [1, 0]
    assert facts["parameters"] == 15
    as_filed = json.loads(perframe("inspect", model, "--json", "--no-optimize", "--dims", "batch=2").out)
    assert [layer["op"] for layer in as_filed["layers"]] == ["Identity", "MatMul", "Add", "Relu"]
    assert as_filed["layers"][-1]["shapes"] == [[2, 3]]
    shown = perframe("inspect", model).out
    assert "(batch, 4)" in shown and "Identity 1 → 0" in shown


def test_inspect_shows_the_memory_of_a_run(perframe: Command, model: Path) -> None:
    used = json.loads(perframe("inspect", model, "--memory", "--json", "--dims", "batch=8").out)
    assert used["weights"] == 15 * 4 and used["packed"] > 0
    assert all(size <= used["arena"] for _, size in used["layers"]) and used["layers"]
    shown = perframe("inspect", model, "--memory").out
    assert "packed weights" in shown and used["layers"][0][0] in shown


@pytest.mark.slow
def test_warmup_fills_the_kernel_cache(
    perframe: Command, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perframe.backends.cpu.compile import jit

    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))
    for linked in (jit.kernel, jit.function):  # as a new process would
        linked.cache_clear()
    first = perframe("warmup", model, "--json")
    assert first.status == 0
    found = json.loads(first.out)
    assert Path(found["folder"]).parent == tmp_path and any(Path(found["folder"]).iterdir())
    assert found["models"][0]["compiled"]
    second = perframe("warmup", model, model)
    assert second.status == 0 and second.out.count("were in the cache") == 2 and str(tmp_path) in second.out


def test_warmup_keeps_programs_of_gl(
    perframe: Command, model: Path, backend: str, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "cpu":
        return
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))
    done = perframe("warmup", model, "--backend", backend)
    assert done.status == 0 and f"the programs of {backend} are ready" in " ".join(done.out.split())
    assert json.loads(perframe("warmup", model, "--backend", backend, "--json").out)["models"][0]["backend"] == backend
    assert perframe("warmup", model, "--backend", "gpu").status == 2


def test_tune_measures_variants(
    perframe: Command, model: Path, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))
    found = json.loads(perframe("tune", model, "--backend", "gpu_pixel", "--repeats", 1, "--json").out)
    assert [trial["kernel"] for trial in found["kernels"]] == ["texels"]
    shown = perframe("tune", model, "--backend", "gpu_pixel", "--repeats", 1).out
    assert "fetched" in shown and "sampled" in shown
    assert perframe("tune", model, "--backend", "cpu").status == 1


@pytest.mark.slow
def test_bench_compares_with_a_peer(perframe: Command, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "bench.json"
    outcome = perframe("bench", model, "--against", "onnxruntime", "--rounds", 2, "--json", out)
    assert outcome.status == 0, outcome.out + outcome.err
    ours, peer = json.loads(out.read_text())["timings"]
    assert (ours["side"], peer["side"], ours["peer"]) == ("cpu", "onnxruntime", "onnxruntime")
    for what in ("steady", "memory"):
        assert ours["ratio"][what] == pytest.approx(peer[what] / ours[what])
    assert len(ours["rounds"]) == 2 and ours["new_shape"] > 0
    assert ours["difference"] < 1e-5 and ours["memory"] > 1 << 20


@pytest.mark.slow
def test_bench_counts_the_fastest_of_several_peers(perframe: Command, model: Path, tmp_path: Path) -> None:
    for peer in ("onnxruntime", "openvino"):
        pytest.importorskip(peer)
    out = tmp_path / "bench.json"
    outcome = perframe("bench", model, "--against", "onnxruntime,openvino", "--rounds", 2, "--json", out)
    assert outcome.status == 0, outcome.out + outcome.err
    ours, *peers = json.loads(out.read_text())["timings"]
    best = min(peers, key=lambda peer: float(peer["steady"]))
    assert [peer["side"] for peer in peers] == ["onnxruntime", "openvino"] and ours["peer"] == best["side"]
    assert ours["ratio"]["steady"] == pytest.approx(best["steady"] / ours["steady"])
    assert ours["difference"] < 1e-5 and all(peer["memory"] > 1 << 20 for peer in peers)


@pytest.mark.slow
def test_bench_goes_on_after_a_model_that_fails(perframe: Command, model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    outcome = perframe("bench", broken, model, "--rounds", 1, "--json", tmp_path / "bench.json")
    failed, measured = json.loads((tmp_path / "bench.json").read_text())["timings"]
    assert outcome.status == 1
    assert "broken.onnx" in failed["error"] and failed["steady"] is None
    assert measured["error"] is None and measured["steady"] > 0


def test_doctor_reports_and_exits_by_what_is_missing(perframe: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = {"vendor": "V", "renderer": "R", "version": "3.3", "max_texture_size": 1 << 20}
    probes = {"describe_headless": driver, "describe_window": driver, "gpu_compute": "too old"}
    monkeypatch.setattr(doctor, "_probe", lambda function, *backend: probes.get((function, *backend)[-1], {}))
    outcome = perframe("doctor", "--all", "--json")
    report = {check["name"]: check for check in json.loads(outcome.out)["checks"]}
    assert outcome.status == 0
    assert report["packages"]["facts"]["numpy"] == np.__version__
    assert report["OpenGL, headless"]["found"] == "3.3, R (V)"
    assert report["gpu_compute"]["status"] == "note" and "gpu_pixel works" in report["gpu_compute"]["advice"]

    probes |= {"describe_headless": "no driver", "cpu": "no compiler"}
    outcome = perframe("doctor", "--all")
    assert outcome.status == 1
    assert "no driver" in outcome.out and "Missing: OpenGL, headless, cpu" in outcome.out


def test_a_probe_that_fails_or_crashes_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "has no attribute 'nothing'" in str(doctor._probe("nothing"))
    assert "crashed with signal SIGABRT" in str(doctor._probe("os.abort"))


@pytest.mark.slow
def test_doctor_knows_this_machine(perframe: Command, gl_context: object) -> None:
    report = {check["name"]: check for check in json.loads(perframe("doctor", "--all", "--json").out)["checks"]}
    for name in ("OpenGL, headless", "cpu", "gpu_compute", "gpu_pixel"):
        assert report[name]["status"] == "ok", report[name]
    assert report["OpenGL, headless"]["facts"]["max_texture_size"] >= 4096


def test_demo_lists_and_passes_arguments_through(
    perframe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "waves.py").write_text("def main(argv):\n    print('waves', argv)\n    return 3\n")
    (tmp_path / "sea").mkdir()
    (tmp_path / "sea" / "__main__.py").write_text("from .tide import main\n")
    (tmp_path / "sea" / "tide.py").write_text("def main(argv):\n    print('sea', argv)\n    return 0\n")
    monkeypatch.setattr(demo, "resource", lambda *_: tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert perframe("demo").out.split() == perframe("demo", "--list").out.split() == ["sea", "waves"]
    assert perframe("demo", "sea", "--help", "x", "--frames=3").out.strip() == "sea ['--help', 'x', '--frames=3']"
    assert perframe("demo", "waves").status == 3


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (["\r"], "painter"),
        (["\x1b[B", "\r"], "sea"),
        (["\x1b[A", "\n"], "waves"),
        (["\x1b[B"] * 4 + ["\x1b[A", "\r"], "painter"),
        (["3", "\r"], "waves"),
        (["7", "x", "2", "\r"], "sea"),
        (["j", "q"], None),
        (["\x1b"], None),
    ],
)
def test_a_demo_is_chosen_by_arrows_or_number(
    keys: list[str], chosen: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    for name in ("painter", "sea", "waves"):
        (tmp_path / f"{name}.py").write_text(f'"""The {name}: it is about {name}. `perframe demo {name}`."""\n')
    monkeypatch.setattr(demo, "resource", lambda *_: tmp_path)
    assert demo.choose_demo(iter(keys).__next__) == chosen
    assert "it is about sea" in capsys.readouterr().out


def test_random_inputs_are_seeded_and_follow_dims() -> None:
    inputs = [
        SimpleNamespace(name="x", dtype=DataType.FLOAT32, shape=("batch", None, 4)),
        SimpleNamespace(name="n", dtype=DataType.INT64, shape=()),
    ]
    first, second = (input_arrays(inputs, ["n=7"], {"batch": 3}, seed=1) for _ in range(2))
    assert first["x"].shape == (3, 1, 4) and first["n"] == 7
    assert np.array_equal(first["x"], second["x"])
    assert random_array(np.random.default_rng(0), (9,), DataType.INT32).max() <= 1
    assert parse_dims("batch=2,h=3") == {"batch": 2, "h": 3}


@pytest.mark.parametrize("shape", [(1, 3, 4, 6), (1, 4, 6, 3), (1, 3, None, None), (3, 4, 6)])
def test_a_picture_takes_the_layout_of_the_input(shape: tuple[int | None, ...], tmp_path: Path) -> None:
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[..., 1] = 255
    Image.fromarray(pixels).save(tmp_path / "green.png")
    wanted = SimpleNamespace(name="x", dtype=DataType.FLOAT32, shape=shape)
    values = input_arrays([wanted], [f"x={tmp_path / 'green.png'}"])["x"]
    channel = shape.index(3)
    assert values.shape == ((1, 3, 4, 6) if None in shape else shape)
    assert values.dtype == np.float32
    assert [float(plane.mean()) for plane in np.moveaxis(values, channel, 0)] == [0, 1, 0]


def test_a_picture_needs_an_input_for_pictures(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "a.png")
    wanted = SimpleNamespace(name="x", dtype=DataType.FLOAT32, shape=(1, 5))
    with pytest.raises(InputError, match="not that of one picture"):
        input_arrays([wanted], [f"x={tmp_path / 'a.png'}"])


def test_light_models_have_seeded_weights_of_their_own() -> None:
    data = light_model("light_squeezenet", seed=1)
    assert data == light_model("squeezenet", seed=1) != light_model("squeezenet", seed=2)
    graph = onnx.load_from_string(data).graph
    assert [value.name for value in graph.input] == ["data_0"]
    assert not [node for node in graph.node if node.op_type == "ConstantOfShape"]
    assert all(np.unique(numpy_helper.to_array(weight)).size > 1 for weight in graph.initializer)
    with pytest.raises(ModelError, match="light_resnet50"):
        named_model("light_nothing")


def test_figures_have_three_digits() -> None:
    assert [seconds_text(value) for value in (None, 2.5, 0.0123, 4.56e-5)] == ["–", "2.50 s", "12.3 ms", "45.6 µs"]
    assert [bytes_text(value) for value in (12, 1536, 5 << 30)] == ["12 B", "1.5 KiB", "5.0 GiB"]


def test_a_bar_is_for_terminals(perframe: Command, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert perframe("inspect", model).err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    shown = perframe("inspect", model).err
    assert "imports 4 nodes" in shown and "optimizes" in shown


@pytest.mark.slow
def test_litert_models_are_inspected_run_and_timed(perframe: Command, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, which writes the file")
    from importers.litert_models import network

    path = tmp_path / "network.tflite"
    path.write_bytes(network()[0])
    assert json.loads(perframe("inspect", path, "--json").out)["operators"]["Transpose"] == [4, 1]
    found = json.loads(perframe("run", path, "--json").out)
    (made,) = found["outputs"].values()
    assert made["shape"] == [1, 5]
    timed = perframe("bench", path, "--against", "litert", "--rounds", "1", "--json", "-")
    assert timed.status == 0, timed.err
    first, second, *_ = json.loads(timed.out)["timings"]
    assert (first["side"], second["side"]) == ("cpu", "litert")


def test_operators_of_both_formats_are_listed(perframe: Command) -> None:
    onnx_rows = json.loads(perframe("operators", "--json").out)
    rows = json.loads(perframe("operators", "--format", "litert", "--json").out)
    assert {row["name"] for row in onnx_rows} >= {"Conv", "Relu"}
    assert {row["name"]: row["supported"] for row in rows}["CONV_2D"]
    assert perframe("operators", "--format", "other").status == 2


def test_a_missing_extra_is_named(perframe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "any.tflite"
    path.write_bytes(b"\x1c\0\0\0TFL3" + bytes(40))
    monkeypatch.setitem(sys.modules, "tflite", None)
    ended = perframe("inspect", path)
    assert ended.status == 1
    assert "pip install 'perframe[litert]'" in ended.err
