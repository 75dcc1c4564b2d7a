"""The README is short, its program runs as it stands, and its figures and links hold; so does the guest of its recipe.

Programs that show something end after some frames, as if a user closed the window. Their last picture is compared.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from fresh import run_fresh

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)
MOST_WORDS = 700

CLOSE_AFTER_THREE_FRAMES = """
import json, sys
import perframe as pf
shown = 0

def keep(swap):
    def keep_and_swap(*arguments):
        global shown
        shown += 1
        import moderngl
        from PIL import Image
        pixels = moderngl.get_context().screen.read((0, 0, 640, 360), 3, alignment=1)
        Image.frombytes("RGB", (640, 360), pixels).transpose(Image.Transpose.FLIP_TOP_BOTTOM).save("shown.png")
        json.dump(app.frame.time, open("time.json", "w"))
        if shown == 3:
            close()
        return swap(*arguments)
    return keep_and_swap

def close():
    if "pyglet" in sys.modules:
        sys.modules["pyglet"].app.exit()
    else:
        app.post(pf.host.CloseEvent())

if "pyglet" in PROGRAM:
    import pyglet
    pyglet.window.Window.flip = keep(pyglet.window.Window.flip)
else:
    import glfw
    glfw.swap_buffers = keep(glfw.swap_buffers)
exec(compile(PROGRAM, "README.md", "exec"))
assert shown >= 3, shown
"""


def painting(seconds: float) -> np.ndarray:
    """The painter's picture of the scene at this time, as large as the window."""
    with pf.TextureConverter() as converter:
        image = converter.to_tensor(pf.media.Scene((320, 180))(seconds), pf.Tensor.empty((1, 3, 180, 320)))
        window = np.zeros((360, 640, 3), np.uint8)
        converter.to_texture(pf.Tensor(pf.run("painter", image)["painting"]), window)
    return window


def difference(path: Path, picture: np.ndarray) -> float:
    return float(np.abs(np.asarray(Image.open(path).convert("RGB")).astype(int) - picture).mean())


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_the_frame_loop_has_ten_lines() -> None:
    (program,) = PYTHON.findall(README)
    assert "pf.App(" in program and len([line for line in program.splitlines() if line]) == 10


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_links_of_a_first_file_lead_to_files(name: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text(encoding="utf-8"))
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_citation_has_our_version() -> None:
    assert f"\nversion: {pf.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_sites_first_page_has_the_same_program() -> None:
    assert PYTHON.findall(README) == PYTHON.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("figure", "column"), [("1.26", None), ("2.99", 2), ("1.40", 4)])
def test_its_figures_are_those_of_the_pages(figure: str, column: int | None) -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert f"{figure} times" in README
    if column is None:
        assert re.search(rf"geometric mean\s[^.]*is {figure}", text)
    else:
        cells = re.findall(r"^\| geometric mean \|(.*)\|$", text, re.MULTILINE)
        assert any(row.split("|")[column - 1].strip() == figure for row in cells)


@pytest.mark.window
def test_the_frame_loop_paints(
    display: None, gl_context: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = PYTHON.findall(README)
    run_fresh(f"PROGRAM = {program!r}\n{CLOSE_AFTER_THREE_FRAMES}")
    painted = painting(json.loads((tmp_path / "time.json").read_text()))
    assert difference(tmp_path / "shown.png", painted) < 1.5
    assert difference(tmp_path / "painting.png", painted) < 1.5


@pytest.mark.slow
@pytest.mark.window
def test_the_guest_paints(display: None, gl_context: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = PYTHON.findall((ROOT / "docs" / "recipes" / "guests.md").read_text(encoding="utf-8"))
    assert "pf.attach(" in program
    run_fresh(f"PROGRAM = {program!r}\n{CLOSE_AFTER_THREE_FRAMES}")
    assert difference(tmp_path / "shown.png", painting(json.loads((tmp_path / "time.json").read_text()))) < 1.5
