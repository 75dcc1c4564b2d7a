"""Upscale: the network enlarges the demo's frames better than bilinear sampling does, on each backend."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.command_line.commands.demo import load_demo
from perframe.host import App, ManualClock, MouseButtonEvent, MouseMoveEvent
from perframe.resources import resource

SIZE = (160, 90)  # that the scene is rendered at


def part(name: str, package: str = "upscale") -> Any:
    load_demo("upscale")
    return import_module(f"perframe_demos.{package}.{name}")


def rendered(ctx: Any, scene: Any, time: float, size: tuple[int, int]) -> np.ndarray:
    """A frame as (1, 3, height, width), 0..1, the top first."""
    target = ctx.simple_framebuffer(size)
    target.use()
    scene.draw(time, size[0] / size[1])
    pixels = np.frombuffer(target.read(), np.uint8).reshape(size[1], size[0], 3)[::-1]
    ctx.simple_framebuffer((1, 1)).use()  # moderngl would bind the released target again
    target.release()
    return pixels.transpose(2, 0, 1)[None].astype(np.float32) / 255


@pytest.fixture
def moment(gl_context: Any) -> tuple[np.ndarray, np.ndarray]:
    """A frame at half of the size, and at full size with sixteen samples a pixel."""
    scene = part("scene").Scene(gl_context)
    small = rendered(gl_context, scene, 701.0, (320, 180))
    large = rendered(gl_context, scene, 701.0, (1280, 720)).reshape(1, 3, 360, 2, 640, 2).mean((3, 5))
    scene.release()
    return small, large


def psnr(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(-10 * np.log10(((found - wanted) ** 2).mean()))


def test_the_network_is_better_than_bilinear(
    moment: tuple[np.ndarray, np.ndarray], backend: str, backend_context: Any
) -> None:
    small, large = moment
    graph = pf.FunctionalGraph()
    frame = graph.add_input("float32", small.shape, "frame")
    bilinear = graph.compile(pf.functional.interpolate(frame, scale_factor=2, mode="bilinear"))
    (enlarged,) = pf.run(bilinear, {"frame": small}).values()
    with pf.Worker(resource("assets", "upscale", "upscale.onnx"), backend, backend_context, strict=True) as worker:
        found = worker.schedule(small).peek_output().download_to_array()
    assert found.shape == large.shape and found.min() >= 0 and found.max() <= 1
    assert psnr(found, large) > psnr(enlarged, large) + 1.5


def test_bilinear_is_left_of_the_line_and_the_network_right(backend: str, gl_context: Any, tmp_path: Path) -> None:
    stage = part("stage", "common").Stage
    options = import_module("argparse").Namespace(size=SIZE, budget=8.0, at=3.0)
    width, height = 2 * SIZE[0], 2 * SIZE[1]
    with App((width, height), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        script = part("view").UpscaleView(stage(pf.BackendType(backend), app.ctx, True, options))
        app.run(script, frames=6)
        app.post(MouseMoveEvent((width * 0.75, height * 0.9)))
        app.post(MouseButtonEvent("left", True, (width * 0.75, height * 0.9)))
        picture = tmp_path / "out.png"
        app.loop_once()
        script.enabled = False
        shown = np.frombuffer(script.shown.texture.read(), np.uint8).reshape(height, width, 3).astype(int)
        small = script._targets[0].color_attachments[0]
        texels = np.frombuffer(small.read(), np.uint8).reshape(SIZE[1], SIZE[0], 4)[::-1, :, :3]
        script.enabled = True
        app.screenshot(picture)
        found = np.asarray(Image.open(picture).convert("RGB")).astype(int)
    left, right = (slice(40, 100), slice(4, 100)), (slice(40, 60), slice(int(width * 0.78), width - 4))
    bilinear = np.asarray(Image.fromarray(texels).resize((width, height), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(found[left] - bilinear[left]).mean() < 1
    assert np.abs(shown[left] - bilinear[left]).mean() > 1  # another picture
    assert np.abs(found[right] - shown[right]).mean() < 1
    assert found[150, int(width * 0.75) - 1 : int(width * 0.75) + 1].min() > 240  # the line, where it was dragged


def test_it_writes_a_picture(backend: str, gl_context: Any, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "upscale.png"
    argv = ["--headless", "--backend", backend, "--size", "160x90", "--frames", "6", "--save", str(out)]
    assert load_demo("upscale")(argv) == 0
    assert f"the picture is in {out}" in capsys.readouterr().out
    picture = np.asarray(Image.open(out).convert("RGB")).astype(int)
    assert picture.shape == (180, 320, 3) and picture.std() > 30


@pytest.mark.parametrize("argv", [["--size", "640"], ["--size", "8x8"], ["--budget", "-1"], ["--size", "99999x99999"]])
def test_what_is_not_understood_ends_with_2(argv: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        load_demo("upscale")(argv)
    assert ended.value.code == 2 and argv[0] in capsys.readouterr().err
