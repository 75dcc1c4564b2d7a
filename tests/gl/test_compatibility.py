"""Windows of the compatibility profile, pygame's and GLUT's default: its old state reaches no result, and stays."""

from __future__ import annotations

import pytest

from fresh import run_fresh

WINDOW = """
import ctypes, os, sys
os.environ["PYOPENGL_PLATFORM"] = "glx"
import glfw, moderngl
import numpy as np
import OpenGL
OpenGL.ERROR_CHECKING = False
from OpenGL import GL
import perframe as pf
from gl.graphs import network

BACKEND = sys.argv[1]
glfw.init()
glfw.window_hint(glfw.VISIBLE, False)
window = glfw.create_window(64, 48, "old", None, None)
glfw.make_context_current(window)
assert GL.glGetIntegerv(GL.GL_CONTEXT_PROFILE_MASK) & 2, "no compatibility profile here"
ctx = moderngl.create_context()

SWITCHES = '''
    ALPHA_TEST POLYGON_STIPPLE POLYGON_SMOOTH LINE_SMOOTH POINT_SMOOTH POINT_SPRITE LIGHTING LIGHT0 FOG
    COLOR_SUM COLOR_MATERIAL NORMALIZE TEXTURE_1D TEXTURE_2D TEXTURE_GEN_S AUTO_NORMAL VERTEX_PROGRAM_TWO_SIDE
    VERTEX_PROGRAM_POINT_SIZE CLIP_PLANE0 CLIP_PLANE5 BLEND INDEX_LOGIC_OP COLOR_LOGIC_OP DEPTH_TEST
    STENCIL_TEST SCISSOR_TEST CULL_FACE FRAMEBUFFER_SRGB SAMPLE_COVERAGE SAMPLE_ALPHA_TO_ONE
    SAMPLE_ALPHA_TO_COVERAGE PRIMITIVE_RESTART DITHER
'''.split()
TRANSFERS = [f"{color}_{kind}" for color in ("RED", "GREEN", "BLUE", "ALPHA") for kind in ("SCALE", "BIAS")]
TRANSFERS.append("MAP_COLOR")
CLAMPS = ("CLAMP_READ_COLOR", "CLAMP_FRAGMENT_COLOR", "CLAMP_VERTEX_COLOR")


def gl(name):
    return getattr(GL, "GL_" + name)


def floats(name, index=None):
    value = (ctypes.c_float * 16)()
    GL.glGetFloatv(gl(name), value) if index is None else GL.glGetFloati_v(gl(name), index, value)
    return list(value)[:4]


def state():
    found = {name: bool(GL.glIsEnabled(gl(name))) for name in SWITCHES}
    found |= {name: floats(name)[0] for name in TRANSFERS}
    found |= {name: int(GL.glGetIntegerv(gl(name))) for name in CLAMPS}
    found |= {"POLYGON_MODE": floats("POLYGON_MODE")[:2], "ALPHA_TEST_FUNC": floats("ALPHA_TEST_FUNC")[0]}
    found |= {f"VIEWPORT {index}": floats("VIEWPORT", index) for index in range(4)}
    return found


def set_all(names, value):
    for name in names:
        (GL.glEnable if value else GL.glDisable)(gl(name))


def set_transfers(scale, bias):
    for name in TRANSFERS:
        GL.glPixelTransferf(gl(name), scale if name.endswith("SCALE") else bias if name.endswith("BIAS") else bias != 0)


def set_clamps(value):
    for name in CLAMPS:
        GL.glClampColor(gl(name), value)


KINDS = {
    "alpha": lambda: (set_all(["ALPHA_TEST"], True), GL.glAlphaFunc(GL.GL_NEVER, 0.5)),
    "stipple": lambda: (set_all(["POLYGON_STIPPLE"], True), GL.glPolygonStipple(np.zeros(128, np.uint8))),
    "clamps": lambda: set_clamps(GL.GL_TRUE),
    "transfers": lambda: set_transfers(0.25, 0.125),
    "modes": lambda: (GL.glPolygonMode(GL.GL_FRONT, GL.GL_POINT), GL.glPolygonMode(GL.GL_BACK, GL.GL_LINE)),
    "switches": lambda: set_all([name for name in SWITCHES if name not in ("ALPHA_TEST", "POLYGON_STIPPLE")], True),
}


def calm():
    set_all(SWITCHES, False)
    set_transfers(1, 0)
    set_clamps(GL.GL_FIXED_ONLY)
    GL.glPolygonMode(GL.GL_FRONT_AND_BACK, GL.GL_FILL)
    GL.glAlphaFunc(GL.GL_ALWAYS, 0)
    while GL.glGetError():
        pass
"""

RESULTS = """
picture = np.random.default_rng(3).integers(0, 256, (12, 16, 4), np.uint8)
x = np.random.default_rng(4).normal(size=(1, 3, 12, 16)).astype(np.float32) * 3
wanted = np.maximum(x * 2 - 0.5, 0)
upright = pf.TextureTransform()


def use(kind):
    calm()
    source, target = ctx.texture((16, 12), 4, picture.tobytes()), ctx.texture((16, 12), 4)
    canvas = ctx.framebuffer([ctx.texture((40, 30), 4, bytes(4800))])
    canvas.use()
    worker, converter = pf.Worker(network(), BACKEND, ctx, strict=True), pf.TextureConverter(ctx, BACKEND)
    GL.glViewport(4, 3, 16, 12)
    GL.glActiveTexture(GL.GL_TEXTURE0)  # units after the eighth have no old state
    kind()
    for index in range(1, 4):
        GL.glViewportIndexedf(index, index, 0.5, 7, 8)
    GL.glScissor(0, 0, 1, 1)
    assert not GL.glGetError()
    before = state()
    y = worker.schedule(x).peek_output()
    found = y.download_to_array()
    sampled = {
        mode: converter.to_tensor(
            source, pf.Tensor.empty((4, 12, 16)), upright.replace(resample=mode)
        ).download_to_array()
        for mode in ("nearest", "area")
    }
    converter.to_texture(pf.Tensor(np.full((3, 12, 16), 0.5, np.float32)), target)
    converter.upload(picture[::-1].copy(), source)
    app = pf.attach(lambda app: app.surface.present(np.full((4, 4, 3), 200, np.uint8)), ctx=ctx, stop_on_error=True)
    app.loop_once()
    shown = app.surface.read_pixels()
    app.release()
    after = state()
    assert not GL.glGetError()
    assert before == after, {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    calm()
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    for values in sampled.values():
        np.testing.assert_allclose(values, picture.transpose(2, 0, 1) / 255, atol=1e-5)
    drawn = np.frombuffer(target.read(alignment=1), np.uint8).reshape(12, 16, 4)
    assert np.abs(drawn[..., :3].astype(int) - 127.5).max() <= 1 and (drawn[..., 3] == 255).all()
    assert np.array_equal(np.frombuffer(source.read(alignment=1), np.uint8).reshape(12, 16, 4), picture[::-1])
    assert (shown == 200).all() and shown.shape == (12, 16, 3)
    whole = np.frombuffer(canvas.read(components=3, alignment=1), np.uint8).reshape(30, 40, 3)
    inside = np.zeros((30, 40), bool)
    inside[3:15, 4:20] = True
    assert (whole[inside] == 200).all() and not whole[~inside].any()
    worker.release()
    converter.release()


for name in sys.argv[2:]:
    use(KINDS[name])
    print(name)
glfw.terminate()
"""

MODES = """
worker = pf.Worker(network(), BACKEND, ctx, strict=True)
x = np.ones((1, 3, 4, 5), np.float32)
GL.glSelectBuffer(64)
GL.glRenderMode(GL.GL_SELECT)
try:
    worker.schedule(x)
except pf.BackendError as error:
    print(error)
GL.glRenderMode(GL.GL_RENDER)
GL.glNewList(GL.glGenLists(1), GL.GL_COMPILE)
try:
    worker.schedule(x)
except pf.BackendError as error:
    print(error)
GL.glEndList()
np.testing.assert_allclose(worker.schedule(x).peek_output().download_to_array(), 1.5)
assert not GL.glGetError()
glfw.terminate()
"""


@pytest.mark.slow
@pytest.mark.window
@pytest.mark.parametrize("kind", ["alpha", "stipple", "clamps", "transfers", "modes", "switches"])
def test_old_state_reaches_no_result_and_stays(display: None, where: str, kind: str) -> None:
    assert kind in run_fresh(WINDOW + RESULTS, where, kind)


@pytest.mark.slow
@pytest.mark.window
def test_modes_that_draw_nothing_are_errors(display: None, where: str) -> None:
    said = run_fresh(WINDOW + MODES, where)
    assert "glRenderMode is GL_SELECT" in said and "a display list is being compiled" in said
