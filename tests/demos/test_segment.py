"""Segment: people are told from what is behind them on each backend, and masks stay on the device."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.command_line.commands.demo import load_demo
from perframe.errors import ModelError
from perframe.host import App, KeyEvent, ManualClock
from perframe.resources import resource

F = pf.functional


def part(name: str, package: str = "segment") -> Any:
    load_demo("segment")
    return import_module(f"perframe_demos.{package}.{name}")


def mask_of(file: Any, pixels: np.ndarray, backend: str = "cpu", ctx: Any = None) -> np.ndarray:
    """(height, width), 0..1."""
    model, transform = part("masks").mask_model(file)
    with pf.Worker(model, backend, ctx, strict=True) as worker:
        given = pf.TextureConverter().to_tensor(pixels, worker.empty_input("image"), transform)
        found: np.ndarray = worker.schedule(given).peek_output().download_to_array()[0, 0]
    return found


def test_our_own_network_finds_the_speaker(backend: str, backend_context: Any) -> None:
    room = part("room").Room((512, 288))
    for time in (0.2, 2.0, 4.5):
        found = mask_of(resource("assets", "segment", "segment.onnx"), room(time), backend, backend_context) > 0.5
        there = np.asarray(room.cover.resize((256, 144))) > 127
        assert (found & there).sum() / (found | there).sum() > 0.93, time


def written(tmp_path: Path, shape: tuple[int, ...], dim: int) -> Path:
    """A file whose mask is the mean of the channels, less a third."""
    graph = pf.FunctionalGraph()
    image = graph.add_input("float32", shape, "image")
    pf.save(graph.compile(mask=F.mean(image, dim, keepdim=True) * 1.5 - 0.5), tmp_path / "mean.onnx")
    return tmp_path / "mean.onnx"


@pytest.mark.parametrize(("shape", "dim"), [((1, 6, 8, 3), 3), ((1, 3, 6, 8), 1)])
def test_channels_may_be_first_or_last(shape: tuple[int, ...], dim: int, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    wanted = np.clip(pixels.mean(2) / 255 * 1.5 - 0.5, 0, 1)
    np.testing.assert_allclose(mask_of(written(tmp_path, shape, dim), pixels), wanted, atol=1e-5)


def test_other_files_are_refused(tmp_path: Path, capsys: Any) -> None:
    refused = r"digits\.onnx is not a segmentation model .* input ink float32 .* it wants one float32"
    with pytest.raises(ModelError, match=refused):
        part("masks").mask_model(resource("assets", "digits", "digits.onnx"))
    argv = ["--headless", "--backend", "cpu", "--save", str(tmp_path / "out.png"), "--background", "nowhere.png"]
    assert load_demo("segment")(argv) == 1
    assert "nowhere.png" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_file_of_others_finds_a_real_person(shared: Path) -> None:
    pixels = np.asarray(Image.open(shared / "images" / "astronaut.png").convert("RGB"))
    found = mask_of(shared / "models" / "selfie_segmentation.onnx", pixels)
    assert found.shape == (144, 256)
    assert found[20:50, 100:125].mean() > 0.95 and found[:40, 200:].mean() < 0.05  # her face, and the shuttle


def test_a_wrong_background_says_what_it_takes() -> None:
    with pytest.raises(pf.InputError, match=r"no file 'blurr'; it takes a picture, blur, or a color"):
        part("view").background("blurr")


@pytest.mark.quick(cases=0)
def test_the_background_is_a_picture_a_blur_or_a_colour(
    backend: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the mask has left the device")

    if backend != "cpu":
        for name in ("readback_request", "readback_and_clone", "download_to_array"):
            monkeypatch.setattr(pf.Tensor, name, refuse)
    stage = part("stage", "common").Stage
    options = Namespace(model=None, source=None, background="#ff8000")
    with App((320, 180), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        script = app.add(part("view").SegmentView(stage(pf.BackendType(backend), app.ctx, True, options)))

        def shown() -> np.ndarray:
            app.loop_once()
            app.framebuffer.use()
            data = app.framebuffer.read(components=3, alignment=1)
            return np.frombuffer(data, np.uint8).reshape(180, 320, 3)[::-1].astype(int)

        for _ in range(3):
            colour = shown()
        seen = Image.fromarray(script._pictures[0].pixels).resize((320, 180))
        corner, chest = (slice(30, 70), slice(4, 60)), (slice(140, 170), slice(120, 160))
        assert script.ground == "colour"
        red, green, blue = colour[corner].mean((0, 1))
        assert red > 150 and 0.4 < green / red < 0.6 and blue < 5
        np.testing.assert_allclose(colour[chest].mean((0, 1)), np.asarray(seen)[chest].mean((0, 1)), atol=12)
        app.post(KeyEvent("2", True))
        blur = shown()
        window = np.asarray(seen).astype(int)[corner]
        assert script.ground == "blur"
        np.testing.assert_allclose(blur[corner].mean((0, 1)), window.mean((0, 1)), atol=12)
        assert np.abs(np.diff(blur[corner], axis=1)).max() < 0.5 * np.abs(np.diff(window, axis=1)).max()
        app.post(KeyEvent("space", True))
        app.loop_once()
        app.post(KeyEvent("1", True))
        picture = shown()
        assert script.ground == "picture" and np.abs(picture[corner] - blur[corner]).mean() > 20


@pytest.mark.quick(cases=0)
def test_it_writes_a_picture(backend: str, gl_context: Any, tmp_path: Path) -> None:
    out = tmp_path / "segment.png"
    argv = ["--headless", "--backend", backend, "--frames", "4", "--background", "00c000", "--save", str(out)]
    assert load_demo("segment")(argv) == 0
    drawn = np.asarray(Image.open(out).convert("RGB")).astype(int)
    green = (drawn[..., 1] > 100) & (drawn[..., [0, 2]].max(2) < 20)
    assert drawn.shape == (720, 1280, 3) and 0.35 < green.mean() < 0.8
