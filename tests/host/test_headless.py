from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from perframe.host import App, Frame, ManualClock, Script
from perframe.host.headless import HeadlessSurface
from perframe.host.surface import open_surface

WIDTH, HEIGHT = 64, 48
RED, GREEN = (255, 0, 0), (0, 255, 0)


class TopIsRed(Script):
    """Clears the framebuffer to green, and its upper quarter to red."""

    def render(self, frame: Frame) -> None:
        framebuffer = self.app.framebuffer
        assert framebuffer is not None
        width, height = frame.size
        framebuffer.clear(0.0, 1.0, 0.0)
        framebuffer.clear(1.0, 0.0, 0.0, viewport=(0, height - height // 4, width, height // 4))


@pytest.fixture
def app(gl_context: Any) -> Iterator[App]:  # gl_context skips or fails the test without GL
    with App(size=(WIDTH, HEIGHT), headless=True, clock=ManualClock(1 / 60), stop_on_error=True) as app:
        yield app


def assert_top_is_red(pixels: np.ndarray[Any, Any]) -> None:
    height = pixels.shape[0]
    assert pixels.dtype == np.uint8
    assert (pixels[: height // 4] == RED).all()
    assert (pixels[height // 4 :] == GREEN).all()


def test_the_context_serves_all_backends(app: App) -> None:
    assert isinstance(app.surface, HeadlessSurface)
    assert app.ctx is not None and app.ctx.version_code >= 330
    assert app.size == (WIDTH, HEIGHT) and app.surface.poll_events() == [] and not app.surface.should_close
    assert app.ctx.mglo._context.load_opengl_function("glFenceSync")


def test_read_pixels_and_screenshot_have_the_top_row_first(app: App, tmp_path: Path) -> None:
    app.run(TopIsRed(), frames=2)
    assert_top_is_red(app.surface.read_pixels())
    app.screenshot(tmp_path / "top_is_red.png")
    image = Image.open(tmp_path / "top_is_red.png")
    assert (image.format, image.size, image.mode) == ("PNG", (WIDTH, HEIGHT), "RGB")
    assert_top_is_red(np.asarray(image))
    assert app.ctx is not None and app.ctx.error == "GL_NO_ERROR"


def test_each_frame_begins_black(app: App) -> None:
    script = TopIsRed()
    app.run(script, frames=1)
    app.remove(script)
    app.loop_once()
    assert not app.surface.read_pixels().any()


def test_present_shows_a_picture_upright(app: App) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    app.surface.present(picture)
    assert np.array_equal(app.surface.read_pixels(), picture)
    app.surface.present(picture[:, :, 0:1].repeat(4, axis=2)[:4, :4])
    assert np.array_equal(app.surface.read_pixels()[:: HEIGHT // 4, :: WIDTH // 4, 0], picture[:4, :4, 0])
    assert app.ctx is not None and app.ctx.error == "GL_NO_ERROR"


def test_odd_sizes_have_no_row_padding(gl_context: Any) -> None:
    with App(size=(7, 5), headless=True, stop_on_error=True) as app:
        app.run(TopIsRed(), frames=1)
        pixels = app.surface.read_pixels()
        assert pixels.shape == (5, 7, 3)
        assert (pixels[:1] == RED).all() and (pixels[1:] == GREEN).all()


def test_two_apps_take_turns_and_a_released_one_leaves_no_context_current(gl_context: Any, app: App) -> None:
    with App(size=(8, 8), headless=True, stop_on_error=True) as other:
        other.add(TopIsRed())
        app.add(Script())
        for _ in range(2):
            other.loop_once()
            app.loop_once()
        assert not app.surface.read_pixels().any()
        other.loop_once()
        assert_top_is_red(other.surface.read_pixels())
    app.add(TopIsRed())
    app.loop_once()
    assert_top_is_red(app.surface.read_pixels())


def test_without_a_display_apps_draw_off_screen(
    gl_context: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    surface = open_surface((4, 4), "no display")
    assert isinstance(surface, HeadlessSurface)
    surface.release()
    surface.release()


def test_users_objects_die_with_the_app_without_noise(gl_context: Any) -> None:
    class Owner(Script):
        def start(self) -> None:
            assert self.app.ctx is not None
            self.buffer = self.app.ctx.buffer(reserve=16)

        def destroy(self) -> None:
            assert self.buffer.read() is not None  # the context is still alive
            self.buffer.release()

    App(size=(4, 4), headless=True, stop_on_error=True).run(Owner(), frames=1)
