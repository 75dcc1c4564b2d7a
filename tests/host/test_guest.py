"""What an app in a context of others finds and leaves there; whole windows of toolkits are in tests/demos."""

from __future__ import annotations

from typing import Any

import moderngl
import numpy as np
import pytest

import perframe as pf
from fresh import run_fresh
from gl.raw import Application
from perframe.errors import BackendError, PerframeError
from perframe.host import Frame, ManualClock, Script


class Red(Script):
    def render(self, frame: Frame) -> None:
        assert self.app.framebuffer is not None
        self.app.framebuffer.clear(1.0, 0.0, 0.0, 1.0)


def test_a_guest_draws_into_the_framebuffer_that_is_bound(gl_context: Any) -> None:
    first, second = (gl_context.simple_framebuffer(size) for size in ((16, 8), (6, 4)))
    for framebuffer in (first, second):
        framebuffer.clear(0.0, 1.0, 0.0, 1.0)
    first.use()
    app = pf.attach(Red(), ctx=gl_context, clock=ManualClock(0.1))
    assert app.size == (16, 8)
    second.use()
    assert app.loop_once().size == (6, 4) and app.framebuffer is not None
    assert first.read(components=3)[:3] == b"\0\xff\0" and second.read(components=3) == b"\xff\0\0" * 24
    assert app.surface.read_pixels()[0, 0].tolist() == [255, 0, 0]
    assert gl_context.fbo.glo == second.glo
    app.release()
    first.use()
    assert gl_context.error == "GL_NO_ERROR" and first.read(components=3)[:3] == b"\0\xff\0", "the context lives"


@pytest.mark.parametrize("hostile", [True, False], ids=["hostile", "default"])
def test_a_guest_leaves_no_trace(gl_context: Any, hostile: bool) -> None:
    """Whatever state the host has set, the app can show an error and read the picture, and leaves the state."""
    ctx = moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code)
    application = Application(ctx)
    application.draw.use()
    application.set_default()
    if hostile:
        application.set_hostile()
    ctx.error  # noqa: B018 - forget what setting up left behind
    before = application.gl.state()

    def fail() -> None:
        raise ZeroDivisionError

    app = pf.attach(lambda: None, ctx=ctx, clock=ManualClock(0.1))
    app.loop_once()
    app.add(fail)
    app.loop_once()
    pixels = app.surface.read_pixels()
    after = application.gl.state()
    assert {name: after[name] for name in before if after[name] != before[name]} == {}
    assert application.gl.errors() == []
    assert tuple(pixels[-1, 0]) == (96, 16, 24)
    app.release()
    ctx.release()
    gl_context.__enter__()


def test_a_guest_sees_a_new_viewport(gl_context: Any) -> None:
    framebuffer = gl_context.simple_framebuffer((16, 8))
    framebuffer.use()
    with pf.attach(ctx=gl_context) as app:
        gl_context.viewport = (0, 0, 5, 3)
        assert app.loop_once().size == (5, 3)


@pytest.mark.parametrize("samples", [0, 4])
@pytest.mark.parametrize("area", [(20, 10, 60, 40), (-10, -5, 60, 40), (70, 50, 60, 40)])
def test_a_guest_keeps_to_the_viewport(gl_context: Any, area: tuple[int, int, int, int], samples: int) -> None:
    """Also while a script has another framebuffer bound, and where the viewport reaches over the edges."""
    framebuffer = gl_context.framebuffer([gl_context.renderbuffer((100, 80), 4, samples=samples)])
    other = gl_context.simple_framebuffer((100, 80))
    framebuffer.clear(0.0, 0.0, 1.0, 1.0)
    other.clear(0.0, 0.0, 1.0, 1.0)
    framebuffer.use()
    gl = Application(gl_context).gl
    gl.glViewport(*area)
    picture = np.full((area[3], area[2], 3), 200, np.uint8)
    picture[:20, :30] = 90
    found: list[Any] = []

    def present(app: pf.App) -> None:
        assert app.framebuffer is not None and app.framebuffer.viewport == area
        other.use()
        app.surface.present(picture)
        found.append(app.surface.read_pixels())

    app = pf.attach(present, ctx=gl_context, clock=ManualClock(0.1), stop_on_error=True)
    app.loop_once()
    app.release()
    flat = gl_context.simple_framebuffer((100, 80))
    gl_context.copy_framebuffer(flat, framebuffer)
    whole = np.frombuffer(flat.read(components=3, alignment=1), np.uint8).reshape(80, 100, 3)
    wanted = np.zeros((80, 100, 3), np.uint8)
    wanted[..., 2] = 255
    (x, y, width, height), upright = area, picture[::-1]
    left, right, low, high = max(x, 0), min(x + width, 100), max(y, 0), min(y + height, 80)
    wanted[low:high, left:right] = upright[low - y : high - y, left - x : right - x]
    assert np.array_equal(whole, wanted)
    assert set(other.read(components=3)) == {0, 255}, "the other one stays"
    assert app.size == (60, 40)
    shown = found[0][::-1][low - y : high - y, left - x : right - x]
    assert np.array_equal(shown, upright[low - y : high - y, left - x : right - x])


def test_a_guest_reads_what_the_host_draws_into(gl_context: Any) -> None:
    """A framebuffer has a buffer to read of its own, which may be another one than those to draw into."""
    first, second = (gl_context.texture((8, 6), 4, bytes([value]) * 192) for value in (10, 20))
    framebuffer = gl_context.framebuffer([first, second])
    framebuffer.use()
    raw = Application(gl_context).gl
    framebuffer.use()
    raw.glBindFramebuffer(0x8CA8, framebuffer.glo)
    raw.glReadBuffer(0x8CE1)
    app = pf.attach(lambda: None, ctx=gl_context, clock=ManualClock(0.1))
    app.loop_once()
    assert set(app.surface.read_pixels().ravel()) == {10}
    raw.glBindFramebuffer(0x8CA8, framebuffer.glo)
    assert raw.number(0x0C02) == 0x8CE1
    app.release()


def test_a_guest_shows_errors_and_leaves_the_framebuffer_bound(gl_context: Any) -> None:
    framebuffer = gl_context.simple_framebuffer((320, 100))
    framebuffer.use()

    def update() -> None:
        raise ZeroDivisionError

    with pf.attach(update, lambda: None, ctx=gl_context) as app:
        app.loop_once()
        assert app.surface.read_pixels()[-1, 0].tolist() == [96, 16, 24]
    assert gl_context.fbo.glo == framebuffer.glo and gl_context.error == "GL_NO_ERROR"


def test_the_loop_of_a_guest_is_the_hosts(gl_context: Any) -> None:
    gl_context.simple_framebuffer((4, 4)).use()
    with pf.attach(ctx=gl_context) as app, pytest.raises(PerframeError, match=r"loop_once\(\)"):
        app.run()


def test_another_context_is_an_error(gl_context: Any) -> None:
    gl_context.simple_framebuffer((4, 4)).use()
    with pf.attach(ctx=gl_context) as app:
        with pf.App(size=(4, 4), headless=True), pytest.raises(BackendError, match="is not current"):
            app.loop_once()
        gl_context.__enter__()
        app.loop_once()


def test_without_a_context_the_error_says_when_to_attach() -> None:
    code = """
import perframe as pf
try:
    pf.attach()
except pf.BackendError as error:
    print(error)
"""
    assert "no current GL context in this thread: call it when the window exists" in run_fresh(code)


def test_a_script_that_fails_to_awake_leaves_no_app(gl_context: Any) -> None:
    destroyed: list[str] = []

    class Good(Script):
        def destroy(self) -> None:
            destroyed.append("good")

    class Bad(Script):
        def awake(self) -> None:
            raise ZeroDivisionError

    gl_context.simple_framebuffer((4, 4)).use()
    with pytest.raises(ZeroDivisionError):
        pf.attach(Good(), Bad(), ctx=gl_context)
    assert destroyed == ["good"]
