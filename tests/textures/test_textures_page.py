"""The programs of docs/textures.md print what the page shows, and the pictures of textures are what they compute."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from texture_pictures import ORIGINS, PICTURE, draw_modes, draw_origins

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "textures.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.S | re.M)


def outputs() -> list[str]:
    """What the programs print."""
    names: dict[str, Any] = {}
    printed = []
    for program, _ in PROGRAMS:
        page = io.StringIO()
        with contextlib.redirect_stdout(page):
            exec(compile(program, "textures.md", "exec"), names)
        printed.append(page.getvalue())
    return printed


def test_the_programs_print_what_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert len(PROGRAMS) == 5
    for printed, (_, shown) in zip(outputs(), PROGRAMS, strict=True):
        assert printed.strip() == shown.strip()


def test_the_picture_is_what_the_modes_compute() -> None:
    assert np.abs(np.asarray(Image.open(PICTURE)).astype(int) - draw_modes()).max() <= 1


def test_the_picture_of_origins_is_what_the_converter_reads(gl_context: Any) -> None:
    """Read as drawn, the ground is at the bottom; read as a picture, it is at the top."""
    shown, drawn = np.asarray(Image.open(ORIGINS).convert("RGBA")).astype(int), draw_origins(gl_context)
    assert np.abs(shown - drawn).max() <= 1
    np.testing.assert_array_equal(drawn[:, :320], drawn[::-1, 340:])
    assert drawn[0, 0, 2] > 200 > drawn[-1, 0, 2]  # the sky is blue, and the ground is not
