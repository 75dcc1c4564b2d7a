"""Open dims that a command has to choose: sensible sizes, printed, and never 1 where a 1 makes no sense."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.inspection.chosen_sizes import choose_sizes
from small import load, node

F = pf.functional
Command = Callable[..., tuple[int, str, str]]


def fixed_side(side: int) -> pf.Model:
    """A model whose flattened picture fits one size only, though its input leaves height and width open."""
    weights = np.ones((3 * side * side, 2), np.float32)
    return load(
        [node("Flatten", "x", "f"), node("MatMul", "f w", "y")],
        {"x": [1, 3, "height", "width"]},
        constants={"w": weights},
    )


def unet() -> pf.Model:
    """Halve, double and join: sides must be even."""
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", ("batch", 3, "h", "w"), "x")
    small = F.max_pool2d(x, 2, 2)
    return graph.compile(y=F.cat([x, F.interpolate(small, scale_factor=2.0)], 1))


def test_sizes_are_likely_ones() -> None:
    chosen = choose_sizes(unet(), {})
    assert dict(chosen.sizes) == {"batch": 1, "h": 64, "w": 64} and chosen.fits
    assert str(chosen) == "batch = 1, h = 64, w = 64 (change with --dims batch=1,h=64,w=64)"


@pytest.mark.parametrize("side", [64, 224, 28])
def test_other_usual_sides_are_tried(side: int) -> None:
    assert dict(choose_sizes(fixed_side(side), {}).sizes) == {"height": side, "width": side}


def test_the_constants_of_the_file_suggest_sizes() -> None:
    model = load([node("MatMul", "x w", "y")], {"x": ["n", "features"]}, constants={"w": np.ones((37, 5), np.float32)})
    assert dict(choose_sizes(model, {}).sizes) == {"n": 1, "features": 37}


def test_what_is_given_is_kept() -> None:
    model = unet()
    assert dict(choose_sizes(model, {"h": 10}).sizes) == {"batch": 1, "w": 64}
    assert not choose_sizes(model, {"batch": 1, "h": 8, "w": 8})


def test_dims_without_names_are_chosen_too() -> None:
    model = load([node("Relu", "x", "y")], {"x": [None, 3, None, None]})
    chosen = choose_sizes(model, {})
    assert dict(chosen.sizes) == {"x:0": 1, "x:2": 64, "x:3": 64}
    assert str(chosen).endswith("(change with --dims x:0=1,x:2=64,x:3=64)")


@pytest.mark.parametrize(
    "command",
    [("run",), ("check", "--backend", "cpu"), ("profile", "--frames", 1), ("warmup",), ("inspect", "--memory")],
    ids=lambda command: command[0],
)
def test_commands_print_the_sizes_that_they_chose(command: Any, perframe: Command, tmp_path: Path) -> None:
    pf.save(unet(), tmp_path / "unet.onnx")
    status, out, err = perframe(command[0], tmp_path / "unet.onnx", *command[1:])
    assert status == 0, out + err
    assert "h = 64, w = 64 (change with --dims batch=1,h=64,w=64)" in err
    status, _, err = perframe(command[0], tmp_path / "unet.onnx", *command[1:], "--dims", "batch=1,h=8,w=8")
    assert status == 0 and "open dims" not in err


def test_a_given_picture_keeps_its_size(perframe: Command, tmp_path: Path) -> None:
    pf.save(unet(), tmp_path / "unet.onnx")
    Image.new("RGB", (12, 8)).save(tmp_path / "p.png")
    status, out, err = perframe("run", tmp_path / "unet.onnx", "--input", tmp_path / "p.png")
    assert status == 0 and "(1, 6, 8, 12)" in out and "open dims" not in err


def test_check_does_not_judge_a_guess_that_fails(perframe: Command, gl_context: object, tmp_path: Path) -> None:
    graph = pf.FunctionalGraph()  # the sides must be multiples of 50: none of the usual ones is
    x = graph.add_input("float32", (1, 1, "height", "width"), "x")
    pf.save(graph.compile(y=F.reshape(x, (1, -1, 1100, 1100))), tmp_path / "odd.onnx")
    status, out, _ = perframe("check", tmp_path / "odd.onnx", "--backend", "cpu,gpu_pixel")
    assert status == 1 and "cpu, gpu_pixel cannot be judged" in out
    assert out.count("cannot be judged without sizes") == 1, "once, with all backends"
    assert "--dims height=" in out and "cannot run it" not in out
    status, out, _ = perframe("check", tmp_path / "odd.onnx", "--backend", "cpu", "--json")
    assert json.loads(out)[0]["guess"]
    assert perframe("check", tmp_path / "odd.onnx", "--backend", "cpu", "--dims", "height=1100,width=1100")[0] == 0
    status, out, _ = perframe("check", tmp_path / "odd.onnx", "--backend", "cpu", "--dims", "height=7,width=7")
    assert status == 1 and "cannot run it" in out


def eighths() -> pf.Model:
    """Both sides must be multiples of 8."""
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (1, 3, "h", "w"), "x")
    small = F.max_pool2d(x, 8, 8)
    return graph.compile(y=F.interpolate(small, scale_factor=8.0) + x)


def test_sizes_that_fit_are_named_where_given_ones_do_not(perframe: Command, tmp_path: Path) -> None:
    pf.save(eighths(), tmp_path / "m.onnx")
    for command in (("run",), ("check", "--backend", "cpu"), ("bench", "--against", "")):
        status, out, err = perframe(command[0], tmp_path / "m.onnx", *command[1:], "--dims", "h=90,w=64")
        assert status and "do not fit with h = 90 (88 or 96 fits)" in out + err, (out, err)
    Image.new("RGB", (20, 16)).save(tmp_path / "p.png")
    _, _, err = perframe("run", tmp_path / "m.onnx", "--input", tmp_path / "p.png")
    assert err == "error: the layers of m.onnx do not fit with w = 20 (16 or 24 fits)"


def test_sizes_that_fit_are_named_where_a_guess_fails(perframe: Command, tmp_path: Path) -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (1, 1, "h", 4), "x")
    wide = F.max_pool2d(x, (61, 1), (61, 1))
    pf.save(graph.compile(y=F.interpolate(wide, scale_factor=(61.0, 1.0)) + x), tmp_path / "m.onnx")
    _, out, _ = perframe("check", tmp_path / "m.onnx", "--backend", "cpu")
    assert "These do not fit: h = 64 (61 or 122 fits) (change with --dims h=64)" in out


COMMANDS: list[tuple[Any, ...]] = [
    ("run",),
    ("check", "--backend", "cpu"),
    ("compare", "--against", "unoptimized"),
    ("profile", "--frames", 1),
    ("warmup",),
    ("inspect",),
    ("inspect", "--memory"),
    ("optimize",),
    ("save", "out.onnx"),
    ("quantize", "out.onnx"),
    ("bench", "--against", "", "--rounds", 1, "--backend", "cpu"),
]


@pytest.fixture
def convolution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a model whose batch, height and width are open and have no names."""
    monkeypatch.chdir(tmp_path)
    weights = np.random.default_rng(0).standard_normal((64, 3, 5, 5)).astype(np.float32)
    made = load([node("Conv", "x w", "y")], {"x": [None, 3, None, None]}, constants={"w": weights})
    pf.save(made, tmp_path / "conv.onnx")
    return tmp_path / "conv.onnx"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(map(str, command)))
def test_dims_sets_open_dims_that_have_no_name(command: Any, perframe: Command, convolution: Path) -> None:
    arguments = [convolution, *command[1:]] if command[0] in ("save", "quantize") else [*command[1:], convolution]
    status, out, err = perframe(command[0], *arguments, "--dims", "x:0=1,x:2=9,x:3=8")
    assert status == 0 and "open dims" not in out + err, (out, err)


@pytest.mark.parametrize("command", [*COMMANDS, ("tune",)], ids=lambda command: "-".join(map(str, command)))
def test_a_misspelt_dim_is_refused(command: Any, perframe: Command, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    pf.save(unet(), tmp_path / "unet.onnx")
    arguments = ["unet.onnx", *command[1:]] if command[0] in ("save", "quantize") else [*command[1:], "unet.onnx"]
    status, out, err = perframe(command[0], *arguments, "--dims", "bach=1")
    assert status, (out, err)
    refusal = "unet.onnx has no open dim named bach: did you mean batch? its open dims are batch, h, w"
    assert refusal in out + err, (out, err)


def test_a_misspelt_dim_is_refused_in_python(tmp_path: Path) -> None:
    pf.save(unet(), tmp_path / "unet.onnx")
    for call in (pf.load, pf.inspect):
        with pytest.raises(pf.ModelError, match=r"no open dim named heigth: its open dims are batch, h, w"):
            call(tmp_path / "unet.onnx", dims={"heigth": 64})
    fixed = pf.load(tmp_path / "unet.onnx", dims={"batch": 1, "h": 8, "w": 8})
    with pytest.raises(pf.ModelError, match="no open dim named h: its inputs have fixed sizes"):
        pf.inspect(fixed, dims={"h": 8})


def test_load_fixes_dims_without_names(convolution: Path) -> None:
    model = pf.load(convolution, dims={"x:0": 1, "x:2": 9})
    assert str(model.inputs[0].shape) == "(1, 3, 9, ?)"


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(map(str, command)))
def test_messages_name_only_options_that_the_command_has(command: Any, perframe: Command, convolution: Path) -> None:
    arguments = [convolution, *command[1:]] if command[0] in ("save", "quantize") else [*command[1:], convolution]
    _, help_text, _ = perframe(command[0], "--help")
    for wrong in ("", "--dims=x:2=3", "--dims=x=2", "--dims=x"):
        _, out, err = perframe(command[0], *arguments, *([wrong] if wrong else ()))
        assert {*OPTION.findall(out + " " + err)} <= {*OPTION.findall(help_text)}, (wrong, out, err)
