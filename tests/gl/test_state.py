"""Every GL state that we touch is as the caller left it, and the caller's state does not reach our results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import moderngl
import numpy as np
import pytest

import perframe as pf
from gl.graphs import network
from gl.raw import Application
from media.yuv import random_frame
from perframe.backends.gl.context import device as context
from perframe.media import Picture
from perframe.media.planes import FrameReader

PICTURE = np.random.default_rng(3).integers(0, 256, (12, 16, 4), np.uint8)
WANTED = np.maximum(PICTURE[..., :3].transpose(2, 0, 1)[None] / np.float32(255) * 2 - 0.5, 0)


@pytest.fixture
def application(gl_context: Any) -> Iterator[Application]:
    """An application in a context of its own."""
    ctx = moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code)
    application = Application(ctx)
    ctx.error  # noqa: B018 - forget what setting up left behind
    yield application
    ctx.release()
    gl_context.__enter__()


class Watch:
    """Runs a call of perframe, and lists the state that it changed."""

    def __init__(self, application: Application) -> None:
        self._gl = application.gl
        self.changes: list[str] = []

    def __call__(self, what: str, action: Callable[[], Any]) -> Any:
        """Run one action between two looks at the state."""
        before = self._gl.state()
        assert self._gl.errors() == []
        result = action()
        errors, after = self._gl.errors(), self._gl.state()
        self.changes += [f"{what}: GL error 0x{error:X}" for error in errors]
        self.changes += [f"{what}: {n} was {before[n]}, is {after[n]}" for n in before if before[n] != after[n]]
        return result


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("hostile", [True, False], ids=["hostile", "default"])
def test_a_frame_leaves_no_trace(application: Application, where: str, hostile: bool) -> None:
    ctx = application.ctx
    picture, target = ctx.texture((16, 12), 4, PICTURE.tobytes()), ctx.texture((16, 12), 4)
    masked, layers = ctx.texture((16, 12), 4), ctx.texture_array((16, 12, 2), 4, PICTURE.tobytes() * 2)
    how = pf.TextureTransform(resample="area", write_mask="b")
    frame = random_frame("yuv420p", (16, 12), 1, False, np.random.default_rng(0), "smooth")
    film = Picture(FrameReader().read(frame), 0, 0.0)
    (application.set_hostile if hostile else application.set_default)()
    watch = Watch(application)
    converter = watch("converter", lambda: pf.TextureConverter(ctx, where))
    worker = watch("worker", lambda: pf.Worker(network(), where, ctx, strict=True))
    x = watch("empty_input", lambda: worker.empty_input("x", (1, 3, 12, 16)))
    ones = np.ones((1, 3, 12, 16), np.float32)
    results = []
    for _ in range(2):
        watch("upload pixels", lambda: converter.upload(PICTURE, masked))
        watch("upload a frame of video", lambda: converter.upload(film, masked))
        watch("mipmap of a frame of video", lambda: converter.to_tensor(film, x, how.replace(resample="mipmap")))
        watch("filter", lambda: converter.to_tensor(picture, pf.Tensor.empty((1, 3, 5, 7)), how))
        watch("batch", lambda: converter.to_tensor(layers, pf.Tensor.empty((2, 3, 5, 7)), how))
        watch("masked", lambda: converter.to_texture(x, masked, how))
        watch("to_tensor", lambda: converter.to_tensor(picture, x))
        watch("schedule", lambda: worker.schedule(x))
        request = watch("readback_request", worker.peek_output().readback_request)
        watch("poll", partial(getattr, request, "done"))
        results.append(watch("result", partial(request.result, wait=True)))
        watch("to_texture", lambda: converter.to_texture(worker.peek_output(), target))
        watch("upload", lambda: x.upload(ones / 2))
        watch("schedule arrays", lambda: worker.schedule(ones))
        results.append(watch("download", worker.peek_output().download_to_array))
        watch("schedule another shape", lambda: worker.schedule(ones[..., :5, :7]))
        watch("schedule_iterable", lambda: list(worker.schedule_iterable(x)))
        results.append(watch("download", worker.peek_output().download_to_array))
    y = worker.peek_output()
    if hostile:
        watch("render_to_screen", lambda: converter.render_to_screen(y))
    watch("render into a framebuffer", lambda: converter.render_to_screen(y, framebuffer=application.read))
    watch("release", lambda: (converter.release(), worker.release()))
    watch("collection", lambda: pf.Worker(network(), where, ctx).release())
    assert not watch.changes, "\n".join(watch.changes)

    for camera, whole, halves in (results[:3], results[3:]):
        np.testing.assert_allclose(camera, WANTED, atol=1e-6)
        np.testing.assert_allclose(whole, 1.5)
        np.testing.assert_allclose(halves, 0.5)
    with application.calm():
        drawn = np.frombuffer(target.read(), np.uint8).reshape(12, 16, 4)
        screen = np.frombuffer(application.canvas.read(), np.uint8).reshape(23, 37, 4)
    assert np.abs(drawn[..., :3] / 255 - np.clip(WANTED[0], 0, 1).transpose(1, 2, 0)).max() < 0.003
    with application.calm():
        beside = np.frombuffer(application.draw.color_attachments[1].read(), np.uint8)
    if hostile:
        assert not beside.any(), "a second color attachment, which no converter writes"
    if hostile:  # the viewport was (3, 2, 17, 11), and the last tensor was one half everywhere
        assert np.abs(screen[2:13, 3:20, :3].astype(int) - 128).max() <= 1
        outside = screen.copy()
        outside[2:13, 3:20] = 0
        assert not outside.any()


@pytest.mark.parametrize("hostile", [True, False], ids=["hostile", "default"])
def test_marks_leave_no_trace(application: Application, where: str, hostile: bool) -> None:
    ctx = application.ctx
    target = ctx.texture((16, 12), 4, bytes(4 * 16 * 12))
    boxes = np.array([[2, 2, 14, 10]], np.float32)
    (application.set_hostile if hostile else application.set_default)()
    watch = Watch(application)
    overlay = watch("overlay", lambda: pf.vision.Overlay(ctx, target=target))
    given = watch("tensor", lambda: pf.Tensor(boxes).to(where, ctx))
    for _ in range(2):
        watch("boxes", lambda: overlay.boxes(given, color=(1.0, 0.0, 0.0)))
        watch("points", lambda: overlay.points(boxes[:, :2], radius=1.0))
        watch("lines", lambda: overlay.lines(boxes.reshape(2, 2), [(0, 1)]))
        watch("masks", lambda: overlay.masks(np.zeros((3, 4), np.float32), scores=[1.0]))
        watch("texts", lambda: overlay.texts(["a"], [(2.0, 2.0)], height=2.0))
    if hostile:
        overlay.target = None
        watch("the bound framebuffer", lambda: overlay.boxes(given))
    overlay.target = application.read
    watch("a framebuffer", lambda: overlay.boxes(given))
    watch("release", overlay.release)
    assert not watch.changes, "\n".join(watch.changes)
    with application.calm():
        drawn = np.frombuffer(target.read(), np.uint8).reshape(12, 16, 4)
        beside = np.frombuffer(application.draw.color_attachments[1].read(), np.uint8)
    np.testing.assert_array_equal(drawn[9:11, 3:8], np.full((2, 5, 4), (255, 0, 0, 255)))
    assert not beside.any(), "a second color attachment, which no mark is drawn into"


def test_conditional_rendering_is_an_error_and_goes_on(application: Application, where: str) -> None:
    """GL discards draws in it, and dispatches: a schedule would leave the old values without a word."""
    ctx, watch = application.ctx, Watch(application)
    picture = ctx.texture((16, 12), 4, PICTURE.tobytes())
    application.draw.use()
    application.draw.clear()
    ctx.viewport = (0, 0, *application.SIZE)
    corners = ctx.buffer(np.array([-1, -1, 3, -1, -1, 3], np.float32).tobytes())
    triangle = ctx.vertex_array(application.program, corners, "at")
    with pf.Worker(network(), where, ctx, strict=True) as worker, pf.TextureConverter(ctx, where) as converter:
        x = converter.to_tensor(picture, worker.empty_input("x", (1, 3, 12, 16)))
        y = worker.schedule(x).peek_output()
        uses = [
            lambda: worker.schedule(x),
            y.readback_request,
            lambda: converter.to_tensor(picture, x),
            lambda: converter.to_texture(y, picture),
            lambda: converter.render_to_screen(y),
        ]
        query = ctx.query(samples=True)
        with query:
            pass
        assert query.samples == 0, "it saw nothing, and GL knows by now"
        with query.crender:
            for use in uses:
                with pytest.raises(pf.BackendError, match="conditional rendering is active"):
                    watch("conditional rendering", use)
            ctx.clear(1, 0, 0)
            triangle.render()
        assert not any(application.canvas.read()), "it was ended, not left as it was"
        triangle.render()
        assert set(application.canvas.read()) == {255}
        watch("schedule", lambda: worker.schedule(x))
        np.testing.assert_allclose(worker.peek_output().download_to_array(), WANTED, atol=1e-6)
    assert not watch.changes, "\n".join(watch.changes)


@pytest.mark.parametrize(
    "provoke",
    [lambda gl: gl.glEnable(0xFFFF), lambda gl: gl.glViewport(0, 0, -1, -1), lambda gl: gl.glUseProgram(10**6)],
    ids=["enum", "value", "operation"],
)
def test_an_error_that_the_application_has_not_asked_for_stays(
    application: Application, where: str, provoke: Callable[[Any], Any]
) -> None:
    with pf.Worker(network(), where, application.ctx) as worker:
        worker.schedule(np.ones((1, 3, 4, 5), np.float32))
        provoke(application.gl)
        wanted = application.gl.errors()
        provoke(application.gl)
        worker.schedule(np.ones((1, 3, 4, 5), np.float32))
        assert len(wanted) == 1 and application.gl.errors() == wanted


def test_transform_feedback_goes_on_after_a_schedule(application: Application, where: str) -> None:
    """No other program can be used meanwhile: draws would be the application's own."""
    ctx, gl = application.ctx, application.gl
    if ctx.version_code < 400:
        pytest.skip("GL 3.3 can neither tell nor pause it")
    source = "#version 330\nout float seen; void main() { seen = gl_VertexID + 1.0; gl_Position = vec4(2.0); }"
    program = ctx.program(vertex_shader=source, varyings=["seen"])
    captured = ctx.buffer(reserve=64)
    with pf.Worker(network(), where, ctx, strict=True) as worker:
        worker.schedule(np.zeros((1, 3, 4, 5), np.float32))
        application.draw.use()
        gl.glUseProgram(program.glo)
        gl.glBindVertexArray(application.vertex_array)
        gl.glBindBufferBase(0x8C8E, 0, captured.glo)
        gl.glBeginTransformFeedback(0)
        gl.glDrawArrays(0, 0, 3)
        y = worker.schedule(np.ones((1, 3, 4, 5), np.float32)).peek_output()
        gl.glDrawArrays(0, 0, 2)
        gl.glEndTransformFeedback()
        assert gl.errors() == []
        np.testing.assert_array_equal(np.frombuffer(captured.read(20), np.float32), [1, 2, 3, 1, 2])
        np.testing.assert_allclose(y.download_to_array(), 1.5)


def test_a_deleted_program_that_is_current_makes_no_error(application: Application, where: str) -> None:
    ctx = application.ctx
    program = ctx.program(
        vertex_shader="#version 330\nin vec2 at; void main() { gl_Position = vec4(at, 0, 1); }",
        fragment_shader="#version 330\nout vec4 color; void main() { color = vec4(1); }",
    )
    ctx.simple_framebuffer((4, 4)).use()
    ctx.vertex_array(program, [(ctx.buffer(bytes(24)), "2f", "at")]).render()
    program.release()  # GL keeps it until another one is current
    assert application.gl.errors() == []
    with pf.Worker(network(), where, ctx, strict=True) as worker:
        worker.schedule(np.zeros((1, 3, 12, 16), np.float32))
        assert application.gl.errors() == []


def test_the_watch_sees_a_change(application: Application) -> None:
    """The instrument itself works."""
    watch = Watch(application)
    watch("mischief", lambda: (application.gl.glViewport(1, 2, 3, 4), application.gl.glEnable(0x0C11)))
    watch("error", lambda: application.gl.glEnable(0xFFFF))
    seen = {change.split(" was ")[0] for change in watch.changes}
    assert {"mischief: viewport", "mischief: scissor is on", "error: GL error 0x500"} <= seen
    if application.ctx.version_code >= 410:
        assert {"mischief: viewport 3", "mischief: scissor test 3"} <= seen


def test_a_schedule_guards_the_state_once(where: str, application: Application, monkeypatch: Any) -> None:
    """An upload and a run share a guard; of a run layer by layer, each layer has one."""
    made: list[object] = []
    enter = context.StateGuard.__enter__
    monkeypatch.setattr(context.StateGuard, "__enter__", lambda guard: (made.append(guard), enter(guard))[1])
    x = np.ones((1, 3, 4, 5), np.float32)
    with pf.Worker(network(), where, application.ctx, strict=True) as worker:
        for _ in range(2):
            made.clear()
            worker.schedule(x)
            assert len(made) == 1
        made.clear()
        layers = list(worker.schedule_iterable(x))
        assert len(layers) > 1 and len(made) == len(layers) + 1, "the last call finds that no layer is left"
