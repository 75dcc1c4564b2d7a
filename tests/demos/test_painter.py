"""The painter from its command line to its picture, on each backend, with each kind of source, and its errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import av
import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.backends.gl.context import devices as context
from perframe.command_line.commands.demo import load_demo
from perframe.graphics.software import is_software
from perframe.host import App, KeyEvent, ManualClock, MouseButtonEvent
from perframe.host.surface import BlankSurface
from perframe.media import open_source

Array = np.ndarray[Any, Any]
Main = Callable[[list[str]], int]

SIZE = (64, 36)  # the network's; the picture is twenty times as large, 1280 × 720
FRAMES = 3
LABEL = 60  # rows at the top that the label may cover
PAINTED_SIZE = "64x36"


@pytest.fixture
def painter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Main:
    """The demo's main, in an empty folder, without a display."""
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return load_demo("painter")


def part(name: str, package: str = "painter") -> ModuleType:
    """A module of the demo."""
    load_demo("painter")
    return import_module(f"perframe_demos.{package}.{name}")


def landscape(path: Path) -> Path:
    """A small picture that no flip or swap of colours leaves alone, with the texture that a painter smooths."""
    y, x = np.mgrid[:90, :160] / np.array([90, 160]).reshape(2, 1, 1)
    grain = 0.25 * np.random.default_rng(0).random((90, 160))
    colors = np.stack([0.1 + 0.6 * x + grain, 0.8 - 0.7 * y, 0.1 + 0.8 * y * x + grain], -1)
    Image.fromarray((colors.clip(0, 1) * 255).astype(np.uint8)).save(path)
    return path


def video(path: Path, frames: int = 10) -> Path:
    """Frame k of 25 a second is a grey of 20 + 20 k, with a white bottom."""
    with av.open(path, "w") as container:
        stream: Any = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 96, 54, "yuv420p", 2_000_000
        for index in range(frames):
            pixels = np.full((54, 96, 3), 20 + 20 * index, np.uint8)
            pixels[40:] = 255
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return path


def read(path: Path) -> Array:
    return np.asarray(Image.open(path).convert("RGB")).astype(float)


def whole_before(picture: Path, frames: int) -> tuple[Array, int]:
    """The picture as it was before, over the whole surface, and the column where the line must be."""
    motion, canvas = part("motion"), part("canvas")
    image = Image.open(picture).convert("RGB")
    window = motion.pan_and_zoom(image.size, SIZE[0] / SIZE[1], frames / 30)
    seen = canvas._seen(window)
    shown = image.resize((1280, 720), Image.Resampling.BILINEAR, seen)
    return np.asarray(shown).astype(float), round(motion.sweep(frames / 30) * 1280)


def check(found: Array, before: Array, split: int) -> None:
    """The picture is as before left of the line, which is white, and painted, alike but different, right of it."""
    assert found.shape == before.shape
    below = slice(LABEL, None)
    left, right = slice(0, split - 40), slice(split + 40, None)
    assert np.abs(found[below, left] - before[below, left]).mean() < 2
    assert found[:, split - 1 : split + 1].min() > 250
    assert found[below, split - 4].max() < 250 and found[below, split + 3].max() < 250
    painted, original = found[below, right], before[below, right]
    assert 3 < np.abs(painted - original).mean() < 20
    for channel in range(3):
        assert np.corrcoef(painted[..., channel].ravel(), original[..., channel].ravel())[0, 1] > 0.6
    assert found[:LABEL, :300].min() < 60 < 250 < found[:LABEL, :300].max()  # white ink on dark paper


def test_a_picture_on_each_backend(painter: Main, backend: str, tmp_path: Path, capsys: Any) -> None:
    source = landscape(tmp_path / "source.png")
    argv = ["--source", str(source), "--size", PAINTED_SIZE, "--backend", backend, "--frames", str(FRAMES)]
    assert painter([*argv, "--headless", "--save", "out.png"]) == 0
    printed = capsys.readouterr().out
    assert "a frame takes" in printed and f"the picture is in {tmp_path / 'out.png'}" in printed
    check(read(tmp_path / "out.png"), *whole_before(source, FRAMES))


@pytest.mark.parametrize("sides", [(90, 161), (39, 37), (1, 3)])
def test_the_network_takes_any_size(sides: tuple[int, int], backend: str) -> None:
    """Sides that are no multiples of 4 grow by copies of the last row and column, which are cut off again."""
    picture = np.random.default_rng(0).random((1, 3, *sides), np.float32)
    grown = np.pad(picture, [(0, 0), (0, 0), *((0, -side % 4) for side in sides)], "edge")
    with pf.Worker("painter", backend=backend) as worker:
        painted = worker.schedule(picture).peek_output().numpy().copy()
        whole = worker.schedule(grown).peek_output().numpy()
    np.testing.assert_array_equal(painted, whole[..., : sides[0], : sides[1]])


@pytest.mark.quick(cases=0)
def test_without_opengl_it_looks_the_same(
    painter: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    import moderngl

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise Exception("libEGL.so not loaded")

    monkeypatch.setattr(moderngl, "create_context", refuse)
    source = landscape(tmp_path / "source.png")
    argv = ["--source", str(source), "--size", PAINTED_SIZE, "--frames", str(FRAMES)]
    assert painter([*argv, "--headless"]) == 0
    printed = capsys.readouterr().out
    assert "libEGL.so not loaded" in printed and "apt-get install" in printed
    assert "painting on cpu: there is no OpenGL here" in printed
    check(read(tmp_path / "painter.png"), *whole_before(source, FRAMES))

    assert painter([*argv, "--backend", "gpu_pixel"]) == 1
    assert "--backend gpu_pixel needs OpenGL" in capsys.readouterr().err


@pytest.mark.quick(cases=0)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_without_a_display_it_says_so_and_writes_a_picture(painter: Main, tmp_path: Path, capsys: Any) -> None:
    assert painter(["--backend", "cpu", "--size", PAINTED_SIZE, "--frames", "1"]) == 0
    printed = capsys.readouterr().out
    assert "drawing off screen: no window" in printed and str(tmp_path / "painter.png") in printed
    assert read(tmp_path / "painter.png")[LABEL:].std() > 20  # our own scene


@pytest.mark.slow
def test_recordings_are_all_the_same(painter: Main, tmp_path: Path) -> None:
    source = video(tmp_path / "source.mp4")
    for name in ("a.png", "b.png"):
        argv = ["--source", str(source), "--size", PAINTED_SIZE, "--backend", "cpu", "--frames", "8", "--headless"]
        assert painter([*argv, "--save", name]) == 0
    first = read(tmp_path / "a.png")
    assert np.array_equal(first[LABEL:], read(tmp_path / "b.png")[LABEL:])
    assert abs(first[200, 100].mean() - (20 + 20 * 6)) < 8  # 8 / 30 s is in the video's frame 6
    assert first[650, 100].min() > 240  # the bottom is at the bottom


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--source", "nothing.png"], r"'nothing\.png' does not exist"),
        (["--source", "."], r"the picture 'half\.png' cannot be read: .*truncated"),
        (["--source", "text.png"], r"'text\.png' is not a picture"),
        (["--source", "half.png"], r"the picture 'half\.png' cannot be read: .*truncated"),
        (["--source", "half.mp4"], "neither a picture nor a video|cannot be decoded|truncated or damaged"),
        (["--source", "camera:77"], "camera 77 .*cannot be opened"),
        (["--save", "nowhere/out.png"], "there is no folder .*nowhere"),
        (["--save", "out.mp4"], r"'out\.mp4' is not the name of a picture"),
    ],
)
def test_errors_are_one_line(painter: Main, tmp_path: Path, capsys: Any, argv: list[str], message: str) -> None:
    (tmp_path / "text.png").write_text("not a picture")
    for path in (landscape(tmp_path / "whole.png"), video(tmp_path / "whole.mp4")):
        data = path.read_bytes()
        path.with_stem("half").write_bytes(data[: len(data) // 2])
    assert painter([*argv, "--headless", "--backend", "cpu"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert re.search(message, error)
    assert not (tmp_path / "painter.png").exists()


def test_a_missing_extra_is_named(painter: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    video(tmp_path / "source.mp4")
    monkeypatch.setitem(sys.modules, "av", None)
    assert painter(["--source", "source.mp4", "--headless"]) == 1
    assert "reading a video needs PyAV: pip install 'perframe[video]'" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["--size", "8x8"], ["--size", "big"], ["--frames", "0"]])
def test_what_is_not_understood_ends_with_2(painter: Main, capsys: Any, argv: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        painter(argv)
    assert ended.value.code == 2 and argv[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("renderer", "version", "chosen", "reason"),
    [
        ("NVIDIA H100", 460, "gpu_compute", "NVIDIA H100 has compute shaders"),
        ("Apple M3", 410, "gpu_pixel", "Apple M3 has OpenGL 4.1"),
        ("llvmpipe (LLVM 15.0.6, 256 bits)", 450, "cpu", "only emulated here, by llvmpipe"),
        (None, 0, "cpu", "there is no OpenGL here"),
    ],
)
def test_the_backend_that_it_chooses(
    renderer: str | None, version: int, chosen: str, reason: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = SimpleNamespace(version_code=version) if renderer else None
    device = SimpleNamespace(
        name=renderer, is_software=renderer and is_software(renderer), has_compute=version >= 430, ctx=ctx
    )
    monkeypatch.setattr(context, "device_for", lambda ctx: device)
    assert part("backend", "common").choose("auto", ctx, "painting") == chosen
    printed = capsys.readouterr().out
    assert printed.startswith(f"painting on {chosen}: ") and reason in printed and printed.count("\n") == 1


def test_the_line_follows_the_mouse_and_escape_ends_it(tmp_path: Path) -> None:
    view, source = part("view"), open_source(str(landscape(tmp_path / "source.png")), (160, 90))
    surface = BlankSurface((640, 360))
    script = view.PainterView(source, pf.BackendType.CPU, SIZE, view.Recording(save=tmp_path / "out.png", in_step=True))
    with App(surface=surface, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        app.add(script)
        app.loop_once()
        app.post(MouseButtonEvent("left", True, (500.0, 100.0)))
        app.loop_once()
        app.post(MouseButtonEvent("left", False, (500.0, 100.0)))
        app.loop_once()
        assert surface.read_pixels()[100:, 499:501].min() > 250
        app.post(KeyEvent("escape", True))
        app.run()
    assert read(tmp_path / "out.png")[100:, 499:501].min() > 250


def test_a_frame_makes_nothing_in_opengl(
    backend: str, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import moderngl

    view, source = part("view"), open_source(str(landscape(tmp_path / "source.png")), (160, 90))
    made: list[str] = []
    with App((320, 180), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        app.add(view.PainterView(source, pf.BackendType(backend), SIZE, view.Recording(in_step=True)))
        app.loop_once()
        for name in ("texture", "buffer", "framebuffer", "program", "vertex_array", "compute_shader"):
            monkeypatch.setattr(moderngl.Context, name, lambda *_, name=name, **__: made.append(name))
        for _ in range(3):  # the window moves, and the label changes
            app.loop_once()
        monkeypatch.undo()
    assert made == []


def test_it_stays_inside_of_the_picture() -> None:
    motion = part("motion")
    for size in ((1600, 900), (300, 1000), (3000, 200)):
        for time in np.arange(0, 400, 1.7):
            x, y, width, height = motion.pan_and_zoom(size, 16 / 9, time)
            assert x >= 0 and y >= 0 and x + width <= size[0] + 1e-9 and y + height <= size[1] + 1e-9
            assert abs(width / height - 16 / 9) < 1e-9
            assert 0 < motion.sweep(time) < 1
