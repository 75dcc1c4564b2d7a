"""The guests of demos/guests, each in a process of its own: the window shows what the network paints."""

from __future__ import annotations

import ctypes
import textwrap
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from fresh import run_fresh
from support import unavailable

GUESTS = Path(__file__).resolve().parents[2] / "demos" / "guests"
MODULES = {  # of each guest
    "in_pyglet": "pyglet",
    "in_pygame": "pygame",
    "in_moderngl_window": "moderngl_window",
    "in_qt": "PySide6",
    "in_pyopengl": "OpenGL",
}

# PySide6 brings the others. The names are Debian's.
LIBRARIES_OF_QT = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
}

# Runs a guest, keeps what its window shows in the fourth frame, and closes the window as a user does.
KEEP = """
import sys
folder, sources = sys.argv[1:]
sys.path.insert(0, sources)
import perframe as pf
from perframe.backends.choosing import choose_backend
from perframe.host.guest import Guest
from PIL import Image

failed, loop_once, release, released = [], Guest.loop_once, Guest.release, []

def look(self):
    frame = loop_once(self)
    if frame.index == 1:
        self.post(pf.host.KeyEvent("a", True))
    if frame.index in (1, 2, 3):
        Image.fromarray(self.surface.read_pixels()).save(f"{folder}/{frame.index}.png")
    if frame.index == 3:
        assert self.ctx.error == "GL_NO_ERROR"
        (script,) = self._scripts
        assert script.worker.backend_type == choose_backend(self.ctx)[0]
        CLOSE
    return frame

def free(self):
    release(self)
    released.append(list(self.failures))

Guest.loop_once, Guest.release = look, free
sys.argv[:] = sys.argv[:1]
exec(compile(open(GUEST).read(), GUEST, "exec"))
assert released == [[]], released
"""
CLOSE = {
    "in_pyglet": "sys.modules['pyglet'].app.exit()",
    "in_pygame": "import pygame; pygame.event.post(pygame.event.Event(pygame.QUIT))",
    "in_moderngl_window": "import moderngl_window; moderngl_window.window().close()",
    "in_qt": "from PySide6.QtCore import QTimer; QTimer.singleShot(0, sys.modules['__main__'].widget.close)",
    "in_pyopengl": "import glfw; glfw.set_window_should_close(glfw.get_current_context(), True)",
}


@pytest.fixture(scope="module")
def pictures() -> tuple[np.ndarray, np.ndarray]:
    """The scene and its painting, as a window of 640 × 360 shows them."""
    root = GUESTS.parents[1] / "assets" / "painter"
    scene = np.asarray(Image.open(root / "scene.jpg").convert("RGB"))
    shown = [np.zeros((360, 640, 3), np.uint8) for _ in range(2)]
    with pf.TextureConverter() as converter:
        image = converter.to_tensor(scene, pf.Tensor.empty((1, 3, 180, 320)))
        painting = pf.Tensor(pf.run(root / "painter.onnx", {"image": image}, "cpu")["painting"])
        converter.to_texture(image, shown[0])
        converter.to_texture(painting, shown[1])
    return shown[0], shown[1]


def can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.window
@pytest.mark.parametrize("guest", MODULES)
def test_a_guest(guest: str, display: None, tmp_path: Path, pictures: tuple[np.ndarray, np.ndarray]) -> None:
    if find_spec(MODULES[guest]) is None:
        unavailable(f"{MODULES[guest]} is not installed: pip install 'perframe[guests]'")
    if guest == "in_qt" and (missing := [name for file, name in LIBRARIES_OF_QT.items() if not can_load(file)]):
        unavailable(f"Qt's windows need libraries of the system: apt install {' '.join(missing)}")
    code = KEEP.replace("CLOSE", textwrap.indent(CLOSE[guest], "        ").strip())
    run_fresh(f"GUEST = {str(GUESTS / guest) + '.py'!r}\n{code}", str(tmp_path), str(GUESTS))
    scene, painting = pictures
    painted, held = (np.asarray(Image.open(tmp_path / f"{index}.png")).astype(int) for index in (1, 2))
    assert painted.shape == painting.shape
    assert np.abs(painted - painting).mean() < 1.5
    assert np.abs(held - scene).mean() < 1.5 < np.abs(held - painting).mean()


def test_there_is_a_test_for_each_guest() -> None:
    assert set(MODULES) == {path.stem for path in GUESTS.glob("in_*.py")}


@pytest.mark.slow
@pytest.mark.window
def test_a_window_of_pixels_is_told_at_once(display: None) -> None:
    """SDL may show a window without pygame.OPENGL by GL: what an app draws there is gone with the next flip."""
    if find_spec("pygame") is None:
        unavailable("pygame is not installed: pip install 'perframe[guests]'")
    code = """
import logging, sys, pygame, perframe as pf
logging.basicConfig(stream=sys.stdout)
pygame.init()
pygame.display.set_mode((320, 240), pygame.OPENGL if sys.argv[1] == "gl" else 0)
try:
    with pf.attach() as app:
        app.loop_once()
except pf.BackendError as error:
    print(error)
"""
    said = run_fresh(code, "pixels")
    assert "attach()" in said and "pygame.OPENGL" in said and "headless=True" in said
    assert "attach()" not in run_fresh(code, "gl")
