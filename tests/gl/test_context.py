"""Contexts: the caller's or our own, several, on one thread; what is missing, released or broken is an error."""

from __future__ import annotations

import threading
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
from gl.raw import Raw
from perframe.backends.gl.compile.program import Shader
from perframe.backends.gl.context import devices as context
from perframe.backends.gl.context.devices import device_for
from perframe.graphics import current_context
from support import unavailable

ONES = np.ones((1, 3, 4, 5), np.float32)
pytestmark = pytest.mark.usefixtures("gl_context")


@pytest.fixture
def another(gl_context: Any) -> Iterator[Callable[..., Any]]:
    """Makes further contexts, each of which becomes current."""
    made: list[Any] = []

    def make(version: int = gl_context.version_code) -> Any:
        made.append(moderngl.create_context(standalone=True, backend="egl", require=version))
        return made[-1]

    yield make
    for ctx in made:
        if not isinstance(ctx.mglo, moderngl.InvalidObject):
            ctx.release()
    gl_context.__enter__()


def in_thread(action: Callable[[], Any]) -> Any:
    """Run an action in another thread. Return its result, or raise its exception."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(action())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


def test_without_a_context_a_worker_makes_its_own(where: str) -> None:
    assert pf.run(network(), {"x": ONES}, where, strict=True)["y"].max() == 1.5
    assert device_for(None) is device_for(None), "one a thread, for all workers"


def test_a_worker_of_its_own_leaves_the_callers_context_current(where: str, another: Callable[..., Any]) -> None:
    ours = another()
    before = current_context.current()
    assert before.context
    buffer = ours.buffer(b"the application's own")
    with pf.Worker(network(), where, strict=True) as worker:
        assert current_context.current() == before
        y = worker.schedule(ONES).peek_output()
        assert current_context.current() == before and buffer.read() == b"the application's own"
        readback = y.readback_request()
        assert current_context.current() == before
        assert readback.result(wait=True).max() == 1.5
        assert current_context.current() == before
        y.upload(ONES)
        y.release()
    del worker, y
    collect_garbage()
    assert current_context.current() == before and ours.error == "GL_NO_ERROR"
    assert buffer.read() == b"the application's own"


@pytest.mark.quick(cases=0)
def test_a_worker_of_its_own_leaves_none_current_where_none_was() -> None:
    """A window that is opened later could not make its context current beside it."""
    code = (
        "import numpy as np, perframe as pf\n"
        "from gl.graphs import network\n"
        "from perframe.graphics import current_context\n"
        "worker = pf.Worker(network(), 'gpu_pixel')\n"
        "assert current_context.current().context is None\n"
        "y = worker.schedule(np.ones((1, 3, 4, 5), np.float32)).peek_output()\n"
        "assert y.download_to_array().max() == 1.5\n"
        "assert current_context.current().context is None\n"
    )
    run_fresh(code)


def test_two_contexts_of_the_callers(where: str, another: Callable[..., Any]) -> None:
    workers = []
    for factor in (1, 2):
        ctx = another()
        worker = pf.Worker(network(), where, ctx, strict=True)
        workers.append((ctx, worker, np.full_like(ONES, factor)))
    for _ in range(2):
        for ctx, worker, x in workers:
            ctx.__enter__()
            np.testing.assert_array_equal(worker.schedule(x).peek_output().download_to_array(), 2 * x - 0.5)
    assert device_for(workers[0][0]) is not device_for(workers[1][0])


def test_a_window_in_the_way_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """EGL makes nothing current beside a GLX context; GL calls would go to the window."""
    with pf.Worker(network(), "gpu_pixel") as worker:
        monkeypatch.setattr(device_for(None), "_current_handle", lambda: None)
        with pytest.raises(pf.BackendError, match=r"window.*ctx="):
            worker.schedule(ONES)
        monkeypatch.setattr(current_context, "current", lambda: current_context.NOTHING)
        monkeypatch.setattr(context, "_default", {})
        with pytest.raises(pf.BackendError, match=r"window.*ctx="):
            pf.Worker(network(), "gpu_pixel")
        monkeypatch.undo()
        assert worker.schedule(ONES).peek_output().download_to_array().max() == 1.5


BESIDE_A_WINDOW = """
import glfw, moderngl, numpy as np, perframe as pf
from gl.graphs import network

x = np.ones((1, 3, 4, 5), np.float32)
worker = pf.Worker(network(), "gpu_pixel")
assert worker.schedule(x).peek_output().download_to_array().max() == 1.5
assert glfw.init()
for hint, value in ((glfw.VISIBLE, False), (glfw.CONTEXT_VERSION_MAJOR, 3), (glfw.CONTEXT_VERSION_MINOR, 3)):
    glfw.window_hint(hint, value)
glfw.make_context_current(glfw.create_window(64, 64, "window", None, None))
ctx = moderngl.create_context()
assert "Loader" in type(ctx.mglo._context).__name__, "this is the worker's, and not the window's"
for use in (lambda: worker.schedule(x), lambda: pf.Worker(network(), "gpu_pixel")):
    try:
        use()
    except pf.BackendError as error:
        assert "ctx=" in str(error)
    else:
        raise AssertionError("it ran in the window's context")
assert ctx.error == "GL_NO_ERROR"
with pf.Worker(network(), "gpu_pixel", ctx) as ours:
    assert ours.schedule(x).peek_output().download_to_array().max() == 1.5
glfw.make_context_current(None)
assert worker.schedule(x).peek_output().download_to_array().max() == 1.5
"""


@pytest.mark.slow
@pytest.mark.window
def test_a_real_window_before_and_after(display: None) -> None:
    """One that opens after a worker of its own has run, and one that is current when it runs."""
    run_fresh(BESIDE_A_WINDOW)


@pytest.mark.parametrize("own", [True, False], ids=["own", "callers"])
def test_another_thread_is_an_error(where: str, own: bool, gl_context: Any) -> None:
    with pf.Worker(network(), where, None if own else gl_context, strict=True) as worker:
        y = worker.schedule(ONES).peek_output()
        readback, steps = y.readback_request(), worker.schedule_iterable(ONES)
        texture, converter = gl_context.texture((5, 4), 4), pf.TextureConverter(gl_context, where)
        x = converter.to_tensor(texture, pf.Tensor.empty((1, 3, 4, 5)))
        commands = pf.CommandBuffer(gl_context).to_tensor(texture, x)
        actions: list[Callable[[], Any]] = [
            lambda: worker.schedule(ONES),
            lambda: next(steps),
            lambda: worker.empty_input("x", (1, 3, 4, 5)),
            lambda: readback.done,
            lambda: converter.to_tensor(texture, x),
            lambda: converter.to_tensor(texture.glo, x),
            lambda: converter.to_texture(x, texture),
            lambda: converter.render_to_screen(x),
            commands.execute,
            lambda: pf.TextureConverter(gl_context),
            lambda: pf.Worker(network(), where, gl_context),
            y.readback_request,
            y.download_to_array,
            lambda: y.upload(ONES),
            lambda: readback.result(wait=True),
        ]
        for action in actions:
            error = in_thread(action)
            assert isinstance(error, pf.BackendError) and "thread" in str(error), error
        assert readback.result(wait=True).max() == 1.5


@pytest.mark.parametrize("own", [True, False], ids=["own", "callers"])
def test_what_another_thread_releases_is_freed_on_this_one(where: str, own: bool, gl_context: Any) -> None:
    ctx = None if own else gl_context
    worker, converter = pf.Worker(network(), where, ctx, strict=True), pf.TextureConverter(gl_context, where)
    x = worker.empty_input("x", (1, 3, 4, 5))
    y = worker.schedule(x).peek_output()
    storage: Any = y.data_on_backend
    freed = storage.memory
    for thing in (worker, converter, x):
        assert in_thread(thing.release) is None
    for use in (lambda: worker.schedule(ONES), y.download_to_array, x.download_to_array):
        with pytest.raises(pf.ClosedError):
            use()
    assert not isinstance(freed.mglo, moderngl.InvalidObject)
    pf.Worker(network(), where, ctx).release()
    assert isinstance(freed.mglo, moderngl.InvalidObject)


def test_each_thread_has_a_context_of_its_own(where: str) -> None:
    def run() -> Any:
        return pf.run(network(), {"x": ONES}, where, strict=True)["y"].max(), device_for(None)

    (second, other), (first, device) = run(), in_thread(run)  # this thread would take over the one of an ended thread
    assert first == second == 1.5 and device is not other


def test_what_another_thread_drops_is_freed_on_this_one(where: str, gl_context: Any) -> None:
    device = device_for(gl_context)
    with device.using():
        pass
    inputs = [pf.Worker(network(), where, gl_context).empty_input("x", (1, 3, 4, 5))]
    storage: Any = inputs[0].data_on_backend
    freed = storage.memory
    del storage
    in_thread(inputs.clear)
    collect_garbage()
    assert freed.glo and not isinstance(freed.mglo, moderngl.InvalidObject)
    with device.using():
        pass
    assert isinstance(freed.mglo, moderngl.InvalidObject)


def test_a_dropped_tensor_is_freed_though_a_converter_used_it(where: str, gl_context: Any) -> None:
    texture = gl_context.texture((4, 4), 4)
    with pf.TextureConverter(gl_context, where) as converter:
        x = pf.Tensor.empty((1, 3, 4, 4))
        converter.to_tensor(texture, x)
        converter.to_texture(x, texture)
        storage = weakref.ref(x.data_on_backend)
        del x
        collect_garbage()
        assert storage() is None
        shown = weakref.ref(texture)
        del texture
        collect_garbage()
        assert shown() is None, "the caller's texture is kept alive"


def test_no_gl_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> Any:
        raise Exception("libEGL.so: cannot open shared object file")

    monkeypatch.setattr(moderngl, "create_context", fail)
    monkeypatch.setattr(context, "_default", {})
    for backend in ("gpu_compute", "gpu_pixel"):
        with pytest.raises(pf.BackendError, match=r"libEGL.so: cannot open.*apt-get install libegl1.*'cpu'"):
            pf.Worker(network(), backend)
    assert pf.run(network(), {"x": ONES})["y"].max() == 1.5


def test_compute_shaders_need_gl_4_3(another: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = another(330)
    monkeypatch.setattr(ctx, "version_code", 330, raising=False)
    with pytest.raises(pf.BackendError, match=r"gpu_compute needs OpenGL 4\.3.* 3\.3: use gpu_pixel"):
        pf.Worker(network(), "gpu_compute", ctx)
    with (
        pytest.raises(pf.BackendError, match=r"no gpu_compute.*3\.3"),
        pf.TextureConverter(ctx, "gpu_compute") as converter,
    ):
        converter.to_tensor(ctx.texture((4, 4), 4), pf.Tensor.empty((1, 3, 4, 4)))
    with pf.Worker(network(), "gpu_pixel", ctx, strict=True) as worker:
        assert worker.schedule(ONES).peek_output().download_to_array().max() == 1.5


@pytest.mark.parametrize("ctx", ["egl", 3, object()])
def test_a_context_is_a_moderngl_context(ctx: Any, where: str) -> None:
    with pytest.raises(pf.BackendError, match=f"moderngl.Context, not {type(ctx).__name__}"):
        pf.Worker(network(), where, ctx)


def test_released_things_say_so(where: str, gl_context: Any) -> None:
    texture = gl_context.texture((5, 4), 4)
    worker = pf.Worker(network(), where, gl_context, strict=True)
    x = worker.empty_input("x", (1, 3, 4, 5))
    y = worker.schedule(x).peek_output()
    worker.release()
    worker.release()
    converter = pf.TextureConverter(gl_context, where)
    converter.to_tensor(texture, x)
    for use in (worker.peek_output, lambda: worker.schedule(ONES), lambda: next(worker.schedule_iterable(ONES))):
        with pytest.raises(pf.ClosedError):
            use()
    for use in (
        y.download_to_array,
        y.readback_request,
        lambda: y.upload(ONES),
        lambda: converter.to_texture(y, texture),
    ):
        with pytest.raises(pf.ClosedError):
            use()
    x.release()
    for use in (x.download_to_array, x.readback_request, lambda: converter.to_tensor(texture, x)):
        with pytest.raises(pf.ClosedError):
            use()
    converter.release()
    converter.release()
    for use in (
        lambda: converter.to_tensor(texture, pf.Tensor.empty((3, 4, 5))),
        lambda: converter.render_to_screen(y),
    ):
        with pytest.raises(pf.ClosedError):
            use()


def test_a_released_tensor_in_a_schedule(where: str, gl_context: Any) -> None:
    with pf.Worker(network(), where, gl_context, strict=True) as worker:
        x = worker.empty_input("x", (1, 3, 4, 5))
        worker.schedule(x)
        x.release()
        with pytest.raises(pf.ClosedError):
            worker.schedule(x)
        assert worker.schedule(ONES).peek_output().download_to_array().max() == 1.5


@pytest.mark.slow
def test_release_frees_all_objects_of_a_worker(where: str, gl_context: Any) -> None:
    """As GL sees it: of the names that a worker got, none lives on."""
    gl = Raw(gl_context)
    device = device_for(gl_context)

    def living() -> int:
        with device.using():
            device.collect()
        kinds = (gl.glIsBuffer, gl.glIsTexture, gl.glIsFramebuffer)
        return sum(bool(exists(name)) for exists in kinds for name in range(1, 100_000))  # Mesa counts on

    collect_garbage()
    with pf.Worker(network(), where, gl_context) as warm:
        warm.schedule(ONES).peek_output().download_to_array()
    del warm
    collect_garbage()
    before = living()
    worker = pf.Worker(network(), where, gl_context)
    y = worker.schedule(ONES).peek_output()
    y.download_to_array()
    assert living() > before + 3
    worker.release()
    del worker, y
    collect_garbage()
    assert living() == before
    worker = pf.Worker(network(), where, gl_context)
    worker.schedule(ONES)
    del worker
    collect_garbage()
    assert living() == before, "dropped without a release"


def test_a_shader_that_does_not_compile_shows_its_lines(gl_context: Any) -> None:
    device = device_for(gl_context)
    text = "#version 330\nout vec4 color;\nvoid main() {\n    color = vec4(nonsense, 0, 0, 1);\n}\n"
    known = device.programs.compiled
    for _ in range(2):
        with device.using(), pytest.raises(pf.BackendError, match="shader pool does not compile") as caught:
            device.programs.get(Shader(text, "fragment"), [], "pool")
            device.programs.settle()
        assert "   4     color = vec4(nonsense, 0, 0, 1);" in str(caught.value)
        assert "nonsense' undeclared" in str(caught.value)
    assert device.programs.compiled == known
    assert pf.run(network(), {"x": ONES}, "gpu_pixel", ctx=gl_context)["y"].max() == 1.5


@pytest.mark.parametrize("name", ["gpu_compute", "gpu_pixel"])
def test_a_tensor_of_another_context_goes_through_the_host(gl_context: Any, name: str) -> None:
    if name == "gpu_compute" and gl_context.version_code < 430:
        unavailable("compute shaders need GL 4.3")
    white = gl_context.texture((5, 4), 4, np.full((4, 5, 4), 255, np.uint8).tobytes())
    with pf.TextureConverter(gl_context, name) as converter, pf.Worker(network(), name) as worker:
        x = converter.to_tensor(white, pf.Tensor.empty((1, 3, 4, 5)))
        y = worker.schedule(x).peek_output().download_to_array()
    np.testing.assert_allclose(y, pf.run(network(), {"x": np.ones((1, 3, 4, 5), np.float32)})["y"])


def test_a_shader_that_does_not_compile_names_its_layer(gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "#version 330\nvoid main() { nonsense(); }\n"
    monkeypatch.setattr("perframe.backends.gl.lowering.steps.compose", lambda *_: Shader(text, "fragment"))
    with pf.Worker(network(), "gpu_pixel", gl_context) as worker:
        layers = {layer.name for layer in worker.model.layers}
        with pytest.raises(pf.BackendError, match=r"of the layer '.*' does not compile") as caught:
            worker.schedule(ONES)
        assert any(repr(name) in str(caught.value) for name in layers)
        monkeypatch.undo()
        assert worker.schedule(ONES).peek_output().download_to_array().max() == 1.5
