"""Current contexts: work for a context that is not current is an error, and objects are freed in their own context."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import moderngl
import numpy as np
import pytest

import perframe as pf
from fresh import run_fresh
from garbage import collect_garbage
from gl.graphs import network
from perframe.backends.gl.context.devices import device_for
from perframe.graphics.headless_context import entry_point

ONES = np.ones((1, 3, 4, 5), np.float32)


@pytest.fixture
def another(gl_context: Any) -> Iterator[Callable[[], Any]]:
    """Makes contexts like the shared one, each of which becomes current."""
    made: list[Any] = []

    def make() -> Any:
        made.append(moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code))
        return made[-1]

    yield make
    for ctx in made:
        if not isinstance(ctx.mglo, moderngl.InvalidObject):
            ctx.__enter__()
            ctx.release()
    gl_context.__enter__()


class Belongings:
    """Buffers, textures and a program of an application, whose names are those of ours in another context."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self._buffers = [ctx.buffer(np.full(400, k, np.uint8).tobytes()) for k in range(40)]
        self._textures = [ctx.texture((4, 4), 4, bytes([k] * 64)) for k in range(40)]
        vertex = "#version 330\nvoid main() { gl_Position = vec4(0.0); }"
        self._programs = [ctx.program(vertex_shader=vertex) for _ in range(10)]
        self._canvas = ctx.simple_framebuffer((4, 4))

    def assert_whole(self) -> None:
        """Every one has its values, and GL has nothing to complain of."""
        assert self._ctx.error == "GL_NO_ERROR"
        for k, (buffer, texture) in enumerate(zip(self._buffers, self._textures, strict=True)):
            assert buffer.read() == bytes([k] * 400) and texture.read() == bytes([k] * 64)
        self._canvas.use()
        for program in self._programs:
            self._ctx.vertex_array(program, []).render(moderngl.POINTS, 1)
        assert self._ctx.error == "GL_NO_ERROR"


def test_what_is_used_while_another_context_is_current(where: str, another: Callable[[], Any]) -> None:
    ctx = another()
    worker, converter = pf.Worker(network(), where, ctx, strict=True), pf.TextureConverter(ctx, where)
    x, texture = worker.empty_input("x", (1, 3, 4, 5)), ctx.texture((5, 4), 4)
    y = worker.schedule(ONES).peek_output()
    readback, steps = y.readback_request(), worker.schedule_iterable(ONES)
    commands = pf.CommandBuffer(ctx).to_tensor(texture, x).schedule_worker(worker, x)
    other = another()
    theirs, foreign = Belongings(other), pf.Worker(network(), where, other, strict=True)
    uses: list[Callable[[], Any]] = [
        lambda: worker.schedule(ONES),
        lambda: worker.schedule(x),
        lambda: next(steps),
        lambda: worker.empty_input("x", (1, 3, 4, 5)),
        lambda: x.upload(ONES),
        lambda: readback.done,
        lambda: readback.result(wait=True),
        y.readback_request,
        y.download_to_array,
        lambda: foreign.schedule(y),
        lambda: converter.to_tensor(texture, x),
        lambda: converter.to_texture(x, texture),
        lambda: converter.render_to_screen(x),
        commands.execute,
        lambda: pf.Worker(network(), where, ctx),
        lambda: pf.TextureConverter(ctx),
    ]
    for use in uses:
        with pytest.raises(pf.BackendError, match="make it current"):
            use()
        theirs.assert_whole()
    assert foreign.schedule(ONES).peek_output().download_to_array().max() == 1.5
    ctx.__enter__()
    assert readback.result(wait=True).max() == 1.5
    assert worker.schedule(ONES / 2).peek_output().download_to_array().max() == 0.5
    commands.execute()
    assert ctx.error == "GL_NO_ERROR"


@pytest.mark.parametrize("how", ["release", "drop"])
def test_what_ends_while_another_context_is_current_is_freed_in_its_own(
    where: str, another: Callable[[], Any], how: str
) -> None:
    ctx = another()
    worker, converter = pf.Worker(network(), where, ctx), pf.TextureConverter(ctx, where)
    x = converter.to_tensor(ctx.texture((5, 4), 4), worker.empty_input("x", (1, 3, 4, 5)))
    storage: Any = x.data_on_backend
    freed = storage.memory
    readback = worker.schedule(x).peek_output().readback_request()
    del storage
    theirs = Belongings(another())
    if how == "release":
        for thing in (worker, converter, x):
            thing.release()
    del worker, converter, x, readback
    collect_garbage()
    theirs.assert_whole()
    assert not isinstance(freed.mglo, moderngl.InvalidObject)
    ctx.__enter__()
    pf.Worker(network(), where, ctx).release()
    assert isinstance(freed.mglo, moderngl.InvalidObject)


def test_a_context_that_was_not_current_at_first(where: str, another: Callable[[], Any]) -> None:
    """Were it taken for the one that is, all its objects would be the other's."""
    ctx, other = another(), another()
    with pytest.raises(pf.BackendError, match="make it current"):
        pf.Worker(network(), where, ctx)
    other.buffer(b"still current").release()
    ctx.__enter__()
    assert pf.run(network(), {"x": ONES}, where, ctx=ctx)["y"].max() == 1.5


def test_no_context_is_current(where: str, another: Callable[[], Any]) -> None:
    ctx = another()
    worker = pf.Worker(network(), where, ctx)
    worker.schedule(ONES)
    ctx.__exit__(None, None, None)
    for use in (lambda: worker.schedule(ONES), lambda: pf.TextureConverter(another_view(ctx))):
        with pytest.raises(pf.BackendError, match="make it current"):
            use()
    worker.release()


def another_view(ctx: Any) -> Any:
    """Another of moderngl's objects for the same context."""
    ctx.__enter__()
    view = moderngl.create_context(context=ctx.mglo._context)
    ctx.__exit__(None, None, None)
    return view


def test_a_released_context(where: str, another: Callable[[], Any]) -> None:
    ctx = another()
    worker, converter = pf.Worker(network(), where, ctx), pf.TextureConverter(ctx, where)
    x, texture = worker.empty_input("x", (1, 3, 4, 5)), ctx.texture((5, 4), 4)
    y = worker.schedule(ONES).peek_output()
    readback = y.readback_request()
    ctx.release()
    theirs = Belongings(another())
    uses: list[Callable[[], Any]] = [
        lambda: worker.schedule(ONES),
        lambda: readback.result(wait=True),
        y.download_to_array,
        y.readback_request,
        lambda: x.upload(ONES),
        lambda: converter.to_tensor(texture, x),
        lambda: pf.Worker(network(), where, ctx),
        lambda: pf.TextureConverter(ctx),
    ]
    for use in uses:
        with pytest.raises(pf.ClosedError, match="context was released"):
            use()
    for thing in (worker, converter, x):
        thing.release()
    uses.clear()
    worker = converter = x = y = readback = None  # type: ignore[assignment]
    collect_garbage()
    theirs.assert_whole()


def test_nothing_of_ours_keeps_a_context_alive(where: str, another: Callable[[], Any], gl_context: Any) -> None:
    ctx = moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code)
    with pf.Worker(network(), where, ctx) as worker, pf.TextureConverter(ctx, where) as converter:
        converter.to_tensor(ctx.texture((5, 4), 4), worker.empty_input("x", (1, 3, 4, 5)))
        worker.schedule(ONES).peek_output().download_to_array()
    dropped = weakref.ref(ctx), weakref.ref(device_for(ctx))
    ctx.release()
    del ctx, worker, converter
    gl_context.__enter__()
    collect_garbage()
    assert [reference() for reference in dropped] == [None, None]


@pytest.mark.slow
def test_a_headless_worker_does_not_become_the_applications_context() -> None:
    """moderngl.create_context() in a window returns the context that the process made last."""
    run_fresh(
        "import moderngl, numpy as np, perframe as pf\n"
        "from gl.graphs import network\n"
        "worker = pf.Worker(network(), 'gpu_pixel')\n"
        "try:\n"
        "    ctx = moderngl.create_context()\n"
        "except Exception as error:\n"
        "    assert 'detect' in str(error), error\n"
        "else:\n"
        "    raise AssertionError('it is the context of the worker')\n"
    )


FORK = """
import os, signal, sys
import moderngl, numpy as np, perframe as pf
from gl.graphs import network

x = np.ones((1, 3, 4, 5), np.float32)
ctx = moderngl.create_context(standalone=True, backend="egl") if sys.argv[2] == "callers" else None
worker = pf.Worker(network(), sys.argv[1], ctx)
y = worker.schedule(x).peek_output()
readback = y.readback_request()
app = pf.App(size=(8, 8), headless=True)
app.loop_once()
child = os.fork()
if child == 0:
    signal.alarm(30)
    for use in (
        lambda: worker.schedule(x), y.download_to_array, lambda: readback.done, app.loop_once, app.release,
        lambda: pf.Worker(network(), sys.argv[1], ctx), lambda: pf.Worker(network(), sys.argv[1]),
        lambda: pf.run(network(), {"x": x}, sys.argv[1], ctx=ctx), lambda: pf.App(size=(8, 8), headless=True),
    ):
        try:
            use()
        except pf.BackendError as error:
            assert "forked" in str(error), error
        else:
            os._exit(1)
    worker.release()
    os._exit(0 if pf.run(network(), {"x": x})["y"].max() == 1.5 else 2)
assert os.waitpid(child, 0)[1] == 0
app.loop_once()
if ctx:
    ctx.__enter__()
assert worker.schedule(x).peek_output().download_to_array().max() == 1.5
"""


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["own", "callers"])
def test_a_forked_child_says_so_and_hangs_nowhere(where: str, whose: str) -> None:
    run_fresh(FORK, where, whose)


WINDOWS = """
import sys
import glfw, moderngl, numpy as np, perframe as pf
from gl.graphs import network

x = np.ones((1, 3, 4, 5), np.float32)
glfw.init()
for hint, value in ((glfw.VISIBLE, False), (glfw.CONTEXT_VERSION_MAJOR, 4 if sys.argv[1] == "gpu_compute" else 3),
                    (glfw.CONTEXT_VERSION_MINOR, 3)):
    glfw.window_hint(hint, value)

def window():
    made = glfw.create_window(64, 64, "window", None, None)
    glfw.make_context_current(made)
    moderngl.init_context()
    return made, moderngl.get_context()

def refused(use, says):
    try:
        use()
    except pf.BackendError as error:
        assert says in str(error), error
    else:
        raise AssertionError("it ran in another window's context")

"""

TWO_WINDOWS = """
(first, a), (second, b) = window(), window()
refused(lambda: pf.Worker(network(), sys.argv[1]), "ctx=moderngl.create_context()")
ours = []
for handle, ctx, factor in ((first, a, 1), (second, b, 2)):
    glfw.make_context_current(handle)
    ours.append((handle, pf.Worker(network(), sys.argv[1], ctx), ctx, factor))
for _ in range(3):
    for handle, worker, ctx, factor in ours:
        glfw.make_context_current(handle)
        assert worker.schedule(x * factor).peek_output().download_to_array().max() == 2 * factor - 0.5
        assert ctx.error == "GL_NO_ERROR"
refused(lambda: ours[0][1].schedule(x), "make it current")
ours[0][1].release()
assert ours[1][1].schedule(x).peek_output().download_to_array().max() == 1.5
assert b.error == "GL_NO_ERROR"
"""

ONE_AFTER_THE_OTHER = """
for _ in range(8):  # a driver may give a new context the handle of a dead one
    handle, ctx = window()
    worker = pf.Worker(network(), sys.argv[1], ctx)
    y = worker.schedule(x).peek_output()
    glfw.destroy_window(handle)
    after, other = window()
    mine = [other.buffer(bytes([k] * 400)) for k in range(60)]
    refused(lambda: worker.schedule(x), "moderngl.init_context()")
    refused(y.download_to_array, "moderngl.init_context()")
    worker.release()
    del worker, y
    assert [buffer.read() for buffer in mine] == [bytes([k] * 400) for k in range(60)]
    glfw.destroy_window(after)
"""


@pytest.mark.slow
@pytest.mark.window
def test_two_windows_do_not_disturb_each_other(display: None, where: str) -> None:
    run_fresh(WINDOWS + TWO_WINDOWS, where)


@pytest.mark.slow
@pytest.mark.window
def test_a_window_that_comes_after_another_is_not_taken_for_it(display: None, where: str) -> None:
    run_fresh(WINDOWS + ONE_AFTER_THE_OTHER, where)


def test_a_context_with_the_handle_of_a_dead_one(where: str, another: Callable[[], Any]) -> None:
    ctx = another()
    worker, converter = pf.Worker(network(), where, ctx), pf.TextureConverter(ctx)
    y, texture = worker.schedule(ONES).peek_output(), ctx.texture((5, 4), 4)
    other = another()
    theirs = Belongings(other)
    device_for(ctx)._handle = device_for(other)._handle
    for use in (lambda: worker.schedule(ONES), y.download_to_array, lambda: converter.to_texture(y, texture)):
        with pytest.raises(pf.BackendError, match="replaced by another"):
            use()
    worker.release()
    theirs.assert_whole()


def test_an_entry_point_that_the_driver_lacks_is_named(gl_context: Any) -> None:
    class Loader:
        def load_opengl_function(self, name: str) -> int:
            missing = name == "glMemoryBarrier" or name == "glClientWaitSync"
            return 0 if missing else int(gl_context.mglo._context.load_opengl_function(name))

        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...
        def release(self) -> None: ...

    ctx = moderngl.create_context(context=Loader())
    with pytest.raises(pf.BackendError, match=r"has no glClientWaitSync.*Loader"):
        pf.Worker(network(), "gpu_pixel", ctx)


def test_loaders_old_and_new(gl_context: Any) -> None:
    """glcontext before version 3 has `load`, moderngl's own and those of callers `load_opengl_function`."""

    class Context:
        version_code = 330

        def __init__(self, **functions: Callable[[str], int]) -> None:
            self.mglo = type("mglo", (), {"_context": type("Loader", (), functions)})

    def find(name: str) -> int:
        return 4096 if name == "glFlush" else 0

    for loader in ({"load": find}, {"load_opengl_function": find}):
        assert entry_point(Context(**loader), "glFlush") == 4096
        with pytest.raises(pf.BackendError, match="has no glNothing"):
            entry_point(Context(**loader), "glNothing")
