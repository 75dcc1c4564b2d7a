"""Attaching to a user's window: each toolkit opens one and makes a context before perframe is imported at all.

A picture goes from a texture to a tensor, through a worker, to a texture and to the window, and what was drawn is read
back.
"""

from __future__ import annotations

import pytest

from fresh import run_fresh

GLFW = """
import glfw
glfw.init()
for hint, value in zip((glfw.CONTEXT_VERSION_MAJOR, glfw.CONTEXT_VERSION_MINOR), VERSION):
    glfw.window_hint(hint, value)
glfw.window_hint(glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)
glfw.window_hint(glfw.CONTEXT_CREATION_API, glfw.EGL_CONTEXT_API if EGL else glfw.NATIVE_CONTEXT_API)
window = glfw.create_window(64, 48, "mine", None, None)
glfw.make_context_current(window)
ctx = moderngl.create_context()
for _ in range(3):
    draw(ctx)
    glfw.swap_buffers(window)
    glfw.poll_events()
glfw.terminate()
"""

PYGAME = """
import pygame
pygame.display.init()
pygame.display.gl_set_attribute(pygame.GL_CONTEXT_MAJOR_VERSION, VERSION[0])
pygame.display.gl_set_attribute(pygame.GL_CONTEXT_MINOR_VERSION, VERSION[1])
pygame.display.gl_set_attribute(pygame.GL_CONTEXT_PROFILE_MASK, pygame.GL_CONTEXT_PROFILE_CORE)
pygame.display.set_mode((64, 48), pygame.OPENGL | pygame.DOUBLEBUF)
ctx = moderngl.create_context()
for _ in range(3):
    pygame.event.get()
    draw(ctx)
    pygame.display.flip()
pygame.quit()
"""

PYGLET = """
import pyglet
config = pyglet.gl.Config(major_version=VERSION[0], minor_version=VERSION[1], double_buffer=True)
window = pyglet.window.Window(64, 48, config=config)
ctx = moderngl.create_context()
frames = []

@window.event
def on_draw():
    draw(ctx)
    frames.append(1)
    if len(frames) == 3:
        pyglet.app.exit()

pyglet.app.run()
assert len(frames) >= 3
"""

MODERNGL_WINDOW = """
import moderngl_window

class Mine(moderngl_window.WindowConfig):
    gl_version = VERSION
    window_size = (64, 48)
    frames = 0

    def on_render(self, time, frame_time):
        draw(self.ctx)
        Mine.frames += 1
        if Mine.frames == 3:
            self.wnd.close()

Mine.run()
assert Mine.frames == 3
"""

DRAW = """
import sys
import moderngl
BACKEND, EGL = sys.argv.pop(1), sys.argv.pop(1) == "egl"
VERSION = (4, 3) if BACKEND == "gpu_compute" else (3, 3)
made = {}

def make(ctx):
    import numpy as np
    import perframe as pf
    from gl.graphs import network
    made["picture"] = np.random.default_rng(3).integers(0, 256, (12, 16, 4), np.uint8)
    made["worker"] = pf.Worker(network(), BACKEND, ctx, strict=True)
    made["converter"] = pf.TextureConverter(ctx, BACKEND)
    made["source"] = ctx.texture((16, 12), 4, made["picture"].tobytes())
    made["target"] = ctx.texture((16, 12), 4)

def draw(ctx):
    if not made:
        make(ctx)
    import numpy as np
    worker, converter = made["worker"], made["converter"]
    ctx.screen.use()
    ctx.clear()
    x = converter.to_tensor(made["source"], worker.empty_input("x", (1, 3, 12, 16)))
    y = worker.schedule(x).peek_output()
    converter.to_texture(y, made["target"])
    converter.render_to_screen(y, viewport=(8, 4, 16, 12))
    values = y.readback_request().result(wait=True)[0].transpose(1, 2, 0)
    error = ctx.error
    assert error == "GL_NO_ERROR", error
    pixels = made["picture"][..., :3] / np.float32(255)
    wanted = np.clip(2 * pixels - 0.5, 0, 1) * 255
    texture = np.frombuffer(made["target"].read(), np.uint8).reshape(12, 16, 4)[..., :3]
    assert np.abs(texture - wanted).max() <= 1, "the texture"
    screen = np.frombuffer(ctx.screen.read((8, 4, 16, 12), 3, alignment=1), np.uint8).reshape(12, 16, 3)[::-1]
    assert np.abs(screen - wanted).max() <= 1, "the window"
    ctx.clear_errors()  # moderngl reads a window's framebuffer as if it had attachments
    np.testing.assert_allclose(values, np.maximum(2 * pixels - 0.5, 0), atol=1e-5)
"""


@pytest.mark.slow
@pytest.mark.window
@pytest.mark.parametrize("api", ["glx", "egl"])
def test_glfw(display: None, where: str, api: str) -> None:
    run_fresh(DRAW + GLFW, where, api)


@pytest.mark.slow
@pytest.mark.window
@pytest.mark.parametrize("toolkit", [PYGAME, PYGLET, MODERNGL_WINDOW], ids=["pygame", "pyglet", "moderngl_window"])
def test_toolkits(display: None, where: str, toolkit: str) -> None:
    run_fresh(DRAW + toolkit, where, "glx")
