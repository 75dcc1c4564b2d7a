"""Neural: the marble's texture is a network in the shader, and finer than a texture of as many bytes."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from exporters.glsl_pixels import drawn
from perframe.command_line.commands.demo import load_demo
from perframe.host import App, ManualClock, MouseButtonEvent, MouseMoveEvent, ScrollEvent
from perframe.resources import resource

SIZE = (320, 180)


def part(name: str, package: str = "neural") -> Any:
    load_demo("neural")
    return import_module(f"perframe_demos.{package}.{name}")


def points(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions on the sphere, and phases."""
    draw = np.random.default_rng(7)
    position = draw.normal(size=(count, 3))
    position /= np.linalg.norm(position, axis=1, keepdims=True)
    return position.astype(np.float32), draw.uniform(size=(count, 1)).astype(np.float32)


def psnr(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(-10 * np.log10(((found - wanted) ** 2).mean()))


def by_texture(texels: np.ndarray, ctx: Any, position: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """What the demo's shader samples from its texture."""
    shader = """vec3 marble(vec3 p, float phase) {
        return texture(texels, vec3(atan(p.z, p.x) / 6.2831853, asin(p.y) / 3.1415927 + 0.5, phase)).rgb;
    }
    void network(in vec3 position, in float phase, out vec3 color) { color = marble(position, phase); }
    """
    texture = part("view")._texture(ctx, texels)
    texture.use(1)
    found = drawn(ctx, f"uniform sampler3D texels;\n{shader}", [position, phase], [3], texels=1)
    texture.release()
    return found[0]


def test_the_shaders_network_is_the_workers(gl_context: Any, backend: str, backend_context: Any) -> None:
    position, phase = points(300)
    model = pf.load("neural")
    with pf.Worker(model, backend, backend_context) as worker:
        wanted = worker.schedule({"position": position, "phase": phase}).peek_output().download_to_array()
    (found,) = drawn(gl_context, pf.to_glsl(model), [position, phase], [3])
    np.testing.assert_allclose(found, wanted, 0, 1e-4)


def test_the_network_is_finer_than_a_texture_of_as_many_bytes(gl_context: Any, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(resource("assets", "neural")))
    pattern = import_module("pattern").pattern
    position, phase = points(4000)
    model, view = pf.load("neural"), part("view")
    wanted = pattern(position.astype(float), phase.astype(float))
    stage = part("stage", "common").Stage(pf.BackendType.CPU, None, True, Namespace())
    texels = view.sampled(model, stage)
    assert texels.size >= 4 * sum(array.size for array in model.constants.values()) - 64
    network = pf.run(model, {"position": position, "phase": phase})["color"]
    assert psnr(network, wanted) > psnr(by_texture(texels, gl_context, position, phase), wanted) + 3
    del sys.modules["pattern"]


def picture(app: App) -> np.ndarray:
    app.loop_once()
    assert app.framebuffer is not None
    pixels = np.frombuffer(app.framebuffer.read(components=3, alignment=1), np.uint8)
    return pixels.reshape(SIZE[1], SIZE[0], 3)[::-1].astype(int)


def test_the_line_is_dragged_and_the_wheel_zooms(backend: str, gl_context: Any) -> None:
    options = Namespace(magnify=8)
    with App(SIZE, headless=True, clock=ManualClock(0.0), stop_on_error=True) as app:
        stage = part("stage", "common").Stage(pf.BackendType(backend), app.ctx, True, options)
        script = app.add(part("view").NeuralView(stage))
        before = picture(app)
        app.post(MouseMoveEvent((200.0, 90.0)))
        app.post(MouseButtonEvent("left", True, (200.0, 90.0)))
        dragged = picture(app)
        assert (dragged[90, 199:201] > 200).all() and np.abs(dragged - before)[60:120, 165:195].mean() > 2
        assert np.abs(dragged - before)[60:120, 210:230].mean() < 1  # right of both lines
        app.post(ScrollEvent((0.0, 10.0)))
        zoomed = picture(app)
        assert np.abs(zoomed - dragged)[60:120, 100:220].mean() > 5 and script._zoom > 4
        app.post(ScrollEvent((0.0, -99.0)))
        np.testing.assert_array_equal(picture(app), dragged)


@pytest.mark.quick(cases=0)
def test_it_writes_a_picture(gl_context: Any, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "neural.png"
    assert load_demo("neural")(["--headless", "--backend", "cpu", "--frames", "2", "--save", str(out)]) == 0
    assert f"the picture is in {out}" in capsys.readouterr().out
    found = np.asarray(Image.open(out).convert("RGB")).astype(int)
    assert found.shape == (720, 1280, 3) and found.std() > 30


def test_what_is_not_understood_ends_with_2(capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        load_demo("neural")(["--magnify", "0"])
    assert ended.value.code == 2 and "--magnify" in capsys.readouterr().err
