"""perframe beside calls of PyOpenGL, in a window of glfw. `python demos/guests/in_pyopengl.py`."""

import glfw
from OpenGL import GL
from painting import Painting

import perframe as pf
from perframe.host import KeyEvent

glfw.init()
glfw.window_hint(glfw.CONTEXT_VERSION_MAJOR, 3)
glfw.window_hint(glfw.CONTEXT_VERSION_MINOR, 3)
glfw.window_hint(glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)
glfw.window_hint(glfw.OPENGL_FORWARD_COMPAT, True)
window = glfw.create_window(640, 360, "perframe and PyOpenGL: hold Space", None, None)
glfw.make_context_current(window)
app = pf.attach(Painting())
glfw.set_key_callback(window, lambda _, key, code, action, bits: app.post(KeyEvent("space", action != glfw.RELEASE)))

while not glfw.window_should_close(window):
    width, height = glfw.get_framebuffer_size(window)
    GL.glViewport(0, 0, width, height)
    app.loop_once()
    GL.glEnable(GL.GL_SCISSOR_TEST)  # a red square, by PyOpenGL
    GL.glScissor(12, 12, 24, 24)
    GL.glClearColor(0.8, 0.2, 0.2, 1)
    GL.glClear(GL.GL_COLOR_BUFFER_BIT)
    GL.glDisable(GL.GL_SCISSOR_TEST)
    glfw.swap_buffers(window)
    glfw.poll_events()

app.release()
glfw.terminate()
