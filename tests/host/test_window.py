"""The glfw window, on a display of the test's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import glfw
import numpy as np
import pytest
from PIL import Image

from perframe.errors import BackendError, PerframeError
from perframe.host import App, CloseEvent, Event, Frame, KeyEvent, ManualClock, ResizeEvent, Script, TextEvent
from perframe.host.window import Window

pytestmark = pytest.mark.window


@pytest.fixture
def app(display: None, gl_context: Any) -> Iterator[App]:
    with App(
        size=(160, 120), title="test", headless=False, clock=ManualClock(1 / 60), vsync=False, stop_on_error=True
    ) as app:
        yield app


class TopIsRed(Script):
    """Clears the window to green and its upper half to red, takes a picture, and keeps the events."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def update(self, frame: Frame) -> None:
        self.app.screenshot(self.path)

    def render(self, frame: Frame) -> None:
        framebuffer = self.app.framebuffer
        assert framebuffer is not None
        width, height = frame.size
        framebuffer.clear(0.0, 1.0, 0.0)
        framebuffer.clear(1.0, 0.0, 0.0, viewport=(0, height // 2, width, height // 2))


def assert_top_is_red(path: Path, size: tuple[int, int]) -> None:
    image = Image.open(path)
    assert image.size == size
    pixels = np.asarray(image)
    assert (pixels[: size[1] // 2] == (255, 0, 0)).all()
    assert (pixels[size[1] // 2 :] == (0, 255, 0)).all()


def handle(app: App) -> Any:
    return app.surface._handle  # type: ignore[attr-defined]


def test_a_window_draws_and_reads_with_the_top_row_first(app: App, tmp_path: Path) -> None:
    assert app.ctx is not None and app.ctx.version_code >= 330
    assert app.ctx.mglo._context.load_opengl_function("glFenceSync")
    app.run(TopIsRed(tmp_path / "window.png"), frames=3)
    assert_top_is_red(tmp_path / "window.png", (160, 120))
    assert app.ctx.error == "GL_NO_ERROR"


def test_present_shows_a_picture_upright(app: App) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (120, 160, 3), np.uint8)

    class Presenter(Script):
        def render(self, frame: Frame) -> None:
            self.app.surface.present(picture)
            self.seen = self.app.surface.read_pixels()

    presenter = Presenter()
    app.run(presenter, frames=2)
    assert np.array_equal(presenter.seen, picture)
    assert app.ctx is not None and app.ctx.error == "GL_NO_ERROR"


def test_nothing_can_be_read_once_it_is_shown(app: App, tmp_path: Path) -> None:
    app.loop_once()
    with pytest.raises(PerframeError, match="in a hook"):
        app.screenshot(tmp_path / "late.png")


def test_a_resized_window_is_drawn_and_read_whole(app: App, tmp_path: Path) -> None:
    import glfw

    script = TopIsRed(tmp_path / "resized.png")
    app.run(script, frames=1)
    glfw.set_window_size(handle(app), 320, 90)
    for _ in range(200):
        if app.loop_once().size == (320, 90):
            break
    app.loop_once()
    assert ResizeEvent((320, 90)) in script.events
    assert_top_is_red(tmp_path / "resized.png", (320, 90))


def test_keys_and_the_close_button(app: App, tmp_path: Path) -> None:
    import glfw

    script = TopIsRed(tmp_path / "close.png")
    app.run(script, frames=1)
    surface: Any = app.surface
    surface._on_key(handle(app), glfw.KEY_LEFT_SHIFT, 50, glfw.PRESS, glfw.MOD_SHIFT)
    surface._on_key(handle(app), glfw.KEY_UNKNOWN, 77, glfw.RELEASE, 0)
    surface._on_text(handle(app), ord("ß"))
    surface._on_mouse_button(handle(app), glfw.MOUSE_BUTTON_RIGHT, glfw.PRESS, 0)
    surface._on_mouse_move(handle(app), 80.0, 30.0)
    surface._on_scroll(handle(app), 0.0, -1.0)
    surface._on_close(handle(app))
    app.run()
    assert KeyEvent("left_shift", True, False, frozenset({"shift"})) in script.events
    assert KeyEvent("scancode_77", False) in script.events
    assert TextEvent("ß") in script.events and app.input.text == "ß"
    assert script.events[-1] == CloseEvent()
    assert app.input.buttons == {"right"} and app.input.keys == {"left_shift"}
    assert app.input.mouse_position == (80.0, 30.0) and app.input.scroll == (0.0, -1.0)
    assert app.frame is not None and app.frame.index == 1
    glfw.set_window_should_close(handle(app), True)
    app.run(frames=5)
    assert app.frame.index == 1


def test_a_window_lives_beside_a_headless_context(app: App, gl_context: Any, tmp_path: Path) -> None:
    app.add(TopIsRed(tmp_path / "beside.png"))
    with App(size=(8, 8), headless=True, stop_on_error=True) as headless:
        for _ in range(2):
            headless.loop_once()
            app.loop_once()
    gl_context.__enter__()
    app.loop_once()
    assert_top_is_red(tmp_path / "beside.png", (160, 120))


def test_two_windows(app: App, tmp_path: Path) -> None:
    with App(size=(64, 64), title="second", headless=None, vsync=False, stop_on_error=True) as second:
        app.add(TopIsRed(tmp_path / "first.png"))
        for _ in range(2):
            app.loop_once()
            second.loop_once()
    app.loop_once()
    assert_top_is_red(tmp_path / "first.png", (160, 120))


def test_full_screen_keeps_what_is_in_the_context(app: App, tmp_path: Path) -> None:
    surface: Any = app.surface
    assert app.ctx is not None
    texture = app.ctx.texture((2, 2), 4, bytes(range(16)))
    script = TopIsRed(tmp_path / "full.png")
    app.run(script, frames=1)
    assert not surface.fullscreen
    surface.fullscreen = True
    for _ in range(200):
        if app.loop_once().size == (1024, 768):
            break
    app.loop_once()
    assert surface.fullscreen and ResizeEvent((1024, 768)) in script.events
    assert_top_is_red(tmp_path / "full.png", (1024, 768))
    surface.fullscreen = True  # again
    surface.fullscreen = False
    for _ in range(200):
        if app.loop_once().size == (160, 120):
            break
    app.loop_once()
    assert_top_is_red(tmp_path / "full.png", (160, 120))
    assert texture.read() == bytes(range(16)) and app.ctx.error == "GL_NO_ERROR"


def test_the_display_is_waited_for_if_it_is_asked(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    import glfw

    surface: Any = app.surface
    intervals: list[int] = []
    monkeypatch.setattr(glfw, "swap_interval", intervals.append)
    assert surface.vsync is False
    surface.vsync = True
    surface.fullscreen = True
    surface.fullscreen = False
    surface.vsync = False
    assert intervals == [1, 1, 1, 0] and surface.vsync is False


def test_positions_are_pixels_on_a_dense_screen(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    import glfw

    surface: Any = app.surface
    monkeypatch.setattr(glfw, "get_window_content_scale", lambda _: (2.0, 2.0))
    surface._on_resize(handle(app), 320, 240)  # the window stays 160 × 120 of the system's units
    surface._on_mouse_move(handle(app), 80.0, 30.0)
    app.loop_once()
    assert app.size == (320, 240) and app.input.mouse_position == (160.0, 60.0) and surface.scale == 2.0


def test_gamepads_are_found_and_read(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """glfw's part is not there without a device; its names and its order of buttons and axes are."""
    import glfw

    class State:
        buttons = [0] * (glfw.GAMEPAD_BUTTON_LAST + 1)
        axes = [0.0] * (glfw.GAMEPAD_AXIS_LAST + 1)

    state = State()
    monkeypatch.setattr(glfw, "joystick_is_gamepad", lambda number: number == 1)
    monkeypatch.setattr(glfw, "get_gamepad_state", lambda number: state)
    monkeypatch.setattr(glfw, "get_gamepad_name", lambda number: "Pad")
    for _ in range(61):
        app.loop_once()
    assert app.input.gamepads[1].name == "Pad" and app.input.gamepads[1].buttons == set()
    state.buttons[glfw.GAMEPAD_BUTTON_A] = state.buttons[glfw.GAMEPAD_BUTTON_DPAD_LEFT] = 1
    state.axes[glfw.GAMEPAD_AXIS_RIGHT_TRIGGER] = -0.75
    app.loop_once()
    pad = app.input.gamepads[1]
    assert pad.buttons == pad.buttons_pressed == {"a", "dpad_left"} and pad.axes["right_trigger"] == -0.75
    monkeypatch.setattr(glfw, "joystick_is_gamepad", lambda number: False)
    app.loop_once()
    assert app.input.gamepads == {}


@pytest.mark.quick(cases=0)
def test_an_error_is_shown_in_the_window(app: App) -> None:
    seen: list[Any] = []

    class Failing(Script):
        def update(self, frame: Frame) -> None:
            raise ZeroDivisionError("as asked")

    swap = app.surface.swap
    app.stop_on_error = False
    app.surface.swap = lambda: (seen.append(app.surface.read_pixels()), swap())  # type: ignore[method-assign]
    app.run(Failing(), lambda: None, frames=2)
    assert tuple(seen[-1][-1, 0]) == (96, 16, 24) and seen[-1][0, -1].max() == 0
    assert app.ctx is not None and app.ctx.error == "GL_NO_ERROR"


def test_macos_windows_belong_to_the_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(glfw, "init", lambda: pytest.fail("glfw would end the process"))
    with ThreadPoolExecutor(1) as pool, pytest.raises(BackendError, match="main thread"):
        pool.submit(Window, (8, 8), "here").result()
