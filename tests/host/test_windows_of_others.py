"""Windows of the application's own glfw, beside windows of ours."""

from __future__ import annotations

import pytest

from fresh import run_fresh

MINE = """
import sys, warnings
import glfw
import numpy as np
import perframe as pf
warnings.simplefilter("error", glfw.GLFWError)
glfw.init()


def window(title):
    glfw.window_hint(glfw.CONTEXT_VERSION_MAJOR, 3)
    glfw.window_hint(glfw.CONTEXT_VERSION_MINOR, 3)
    glfw.window_hint(glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)
    glfw.window_hint(glfw.VISIBLE, False)
    api = glfw.EGL_CONTEXT_API if sys.argv[1] == "egl" else glfw.NATIVE_CONTEXT_API
    glfw.window_hint(glfw.CONTEXT_CREATION_API, api)
    made = glfw.create_window(60, 40, title, None, None)
    assert made
    return made


mine = window("mine")
"""
USES = {
    "app": "pf.App((64, 48), headless=False, vsync=False).run(lambda frame: None, frames=2)",
    "sink": 'with pf.media.open_sink("window") as sink: sink.write(np.zeros((8, 8, 3), np.uint8))',
    "failure": """
try:
    pf.App((10**7, 10), headless=False)
except pf.BackendError:
    pass
""",
}
GOES_ON = """
glfw.make_context_current(mine)
assert glfw.get_window_size(mine) == (60, 40)
glfw.swap_buffers(mine)
glfw.poll_events()
other = glfw.create_window(30, 20, "later", None, None)  # the hints are glfw's own again
assert other and glfw.get_window_attrib(other, glfw.RESIZABLE) and glfw.get_window_attrib(other, glfw.VISIBLE)
assert glfw.get_window_attrib(other, glfw.CONTEXT_CREATION_API) == glfw.NATIVE_CONTEXT_API
glfw.terminate()
"""


@pytest.mark.quick(cases=0)
@pytest.mark.window
@pytest.mark.parametrize("api", ["glx", "egl"])
@pytest.mark.parametrize("use", USES)
def test_the_applications_glfw_goes_on(display: None, use: str, api: str) -> None:
    run_fresh(f"{MINE}\n{USES[use]}\n{GOES_ON}", api)
