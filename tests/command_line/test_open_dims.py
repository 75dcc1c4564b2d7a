"""Open dims that a command has to choose: sensible sizes, printed, and never 1 where a 1 makes no sense."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.command_line.open_dims import choose_sizes
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
    assert str(chosen) == "batch = 1, h = 64, w = 64 (open): --dims batch=1,h=64,w=64"


@pytest.mark.parametrize("side", [64, 224, 28])
def test_other_usual_sides_are_tried(side: int) -> None:
    assert dict(choose_sizes(fixed_side(side), {}).sizes) == {"height": side, "width": side}


def test_the_constants_of_the_file_suggest_sizes() -> None:
    model = load([node("MatMul", "x w", "y")], {"x": ["n", "features"]}, constants={"w": np.ones((37, 5), np.float32)})
    assert dict(choose_sizes(model, {}).sizes) == {"n": 1, "features": 37}


def test_what_is_given_is_kept() -> None:
    model = unet()
    assert dict(choose_sizes(model, {"h": 10}).sizes) == {"batch": 1, "w": 64}
    assert not choose_sizes(model, {}, {"x": (1, 3, 8, 8)})


def test_dims_without_names_are_chosen_too() -> None:
    model = load([node("Relu", "x", "y")], {"x": [None, 3, None, None]})
    chosen = choose_sizes(model, {})
    assert dict(chosen.shapes) == {"x": (1, 3, 64, 64)}
    assert "--input x=random:1x3x64x64" in str(chosen)


@pytest.mark.parametrize(
    "command",
    [("run",), ("check", "--backend", "cpu"), ("profile", "--frames", 1), ("warmup",), ("inspect", "--memory")],
    ids=lambda command: command[0],
)
def test_commands_print_the_sizes_that_they_chose(command: Any, perframe: Command, tmp_path: Path) -> None:
    pf.save(unet(), tmp_path / "unet.onnx")
    status, out, err = perframe(command[0], tmp_path / "unet.onnx", *command[1:])
    assert status == 0, out + err
    assert "h = 64, w = 64 (open): --dims batch=1,h=64,w=64" in err
    status, _, err = perframe(command[0], tmp_path / "unet.onnx", *command[1:], "--dims", "batch=1,h=8,w=8")
    assert status == 0 and "(open)" not in err


def test_a_given_picture_keeps_its_size(perframe: Command, tmp_path: Path) -> None:
    pf.save(unet(), tmp_path / "unet.onnx")
    Image.new("RGB", (12, 8)).save(tmp_path / "p.png")
    status, out, err = perframe("run", tmp_path / "unet.onnx", "--input", tmp_path / "p.png")
    assert status == 0 and "(1, 6, 8, 12)" in out and "(open)" not in err


def test_check_does_not_judge_a_guess_that_fails(perframe: Command, tmp_path: Path) -> None:
    graph = pf.FunctionalGraph()  # the sides must be multiples of 50: none of the usual ones is
    x = graph.add_input("float32", (1, 1, "height", "width"), "x")
    pf.save(graph.compile(y=F.reshape(x, (1, -1, 1100, 1100))), tmp_path / "odd.onnx")
    status, out, _ = perframe("check", tmp_path / "odd.onnx", "--backend", "cpu")
    assert status == 1
    assert "cannot be judged without sizes" in out and "--dims height=" in out and "cannot run it" not in out
    status, out, _ = perframe("check", tmp_path / "odd.onnx", "--backend", "cpu", "--json")
    assert json.loads(out)[0]["guess"]
    assert perframe("check", tmp_path / "odd.onnx", "--backend", "cpu", "--dims", "height=1100,width=1100")[0] == 0
    status, out, _ = perframe("check", tmp_path / "odd.onnx", "--backend", "cpu", "--dims", "height=7,width=7")
    assert status == 1 and "cannot run it" in out
