"""The README's programs run as they stand, each in a process of its own, and draw what they should.

Those that show something are ended after some frames, as a user would who closes the window; the last frame is kept.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from fresh import run_fresh

ROOT = Path(__file__).resolve().parents[1]
SHOWN = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
PROGRAMS = [*SHOWN[:2], SHOWN[1].rpartition("pf.App(")[0] + SHOWN[2]]  # the third one has the script of the second

END_AFTER_THREE_FRAMES = """
import os, sys
shown = 0

def keep(swap):
    def keep_and_swap(*arguments):
        global shown
        shown += 1
        if shown == 3:
            import moderngl
            from PIL import Image
            screen = moderngl.get_context().screen
            pixels = screen.read((0, 0, 640, 360), 3, alignment=1)
            Image.frombytes("RGB", (640, 360), pixels).transpose(Image.Transpose.FLIP_TOP_BOTTOM).save(sys.argv[1])
            close()
        return swap(*arguments)
    return keep_and_swap

def close():
    if "pyglet" in sys.modules:
        sys.modules["pyglet"].app.exit()

if "pyglet" in PROGRAM:
    import pyglet
    pyglet.window.Window.flip = keep(pyglet.window.Window.flip)
else:
    import glfw
    glfw.swap_buffers = keep(glfw.swap_buffers)
    glfw.window_should_close = lambda window: shown >= 3
exec(compile(PROGRAM, "README.md", "exec"))
assert shown >= 3, shown
"""


def painted() -> np.ndarray:
    """The painter's picture of the scene, as large as the window."""
    scene = np.asarray(Image.open(ROOT / "assets" / "painter" / "scene.jpg").convert("RGB"))
    with pf.TextureConverter() as converter:
        image = converter.to_tensor(scene, pf.Tensor.empty((1, 3, 180, 320)))
        model = pf.load(ROOT / "assets" / "painter" / "painter.onnx")
        painting = pf.Tensor(pf.run(model, {"image": image}, "gpu_pixel")["painting"])
        window = np.zeros((360, 640, 3), np.uint8)
        converter.to_texture(painting, window)
    return window


def test_the_readme_has_three_programs() -> None:
    code, loop, attached = (textwrap.dedent(program).split("\n") for program in SHOWN)
    assert "Worker" in "".join(code)
    assert "pf.App(" in "".join(loop) and len([line for line in loop if line]) <= 20
    assert "pf.attach(" in "".join(attached) and len([line for line in attached if line]) <= 10


def test_the_first_program(gl_context: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run_fresh(PROGRAMS[0] + "\nassert painting.shape == (1, 3, 240, 320) and list(paintings) == ['painting']\n")


@pytest.mark.window
@pytest.mark.parametrize("index", [1, 2], ids=["frame_loop", "attached_window"])
def test_a_program_that_draws(
    display: None, gl_context: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, index: int
) -> None:
    monkeypatch.chdir(ROOT)
    picture = tmp_path / "shown.png"
    run_fresh(f"PROGRAM = {PROGRAMS[index]!r}\n{END_AFTER_THREE_FRAMES}", str(picture))
    shown = np.asarray(Image.open(picture)).astype(int)
    assert np.abs(shown - painted()).mean() < 1.5
