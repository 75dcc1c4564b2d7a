"""The moving pictures of the gallery: the tool that makes them, and the files."""

from __future__ import annotations

import importlib.util
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from perframe.command_line.commands.demo import demos, load_demo

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"


def tool() -> ModuleType:
    import sys

    spec = importlib.util.spec_from_file_location("moving_pictures", ROOT / "tools" / "moving_pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", [*demos(), "hero"])
def test_each_demo_has_a_small_moving_picture(name: str) -> None:
    path = PICTURES / f"{name}.webp"
    assert path.stat().st_size < (3_000_000 if name == "hero" else 700_000)
    with Image.open(path) as picture:
        assert getattr(picture, "n_frames", 1) >= 20 and picture.width >= 480 and picture.info["loop"] == 0
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert name == "hero" or (f"pictures/{name}.webp" in page and f"(demos/{name}.md)" in page)


@pytest.mark.slow
def test_a_recording_moves_and_is_alike_each_time(gl_context: Any, tmp_path: Path) -> None:
    pictures = tool()
    film = pictures.Film(0, 24, 6)
    first, second = (pictures.record("digits", film) for _ in range(2))
    assert len(first) == 4 and first[0].size == pictures.SIZE
    assert len({picture.tobytes() for picture in first}) == 4
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    pictures.write(tmp_path / "film.webp", first, 100, 60)
    with Image.open(tmp_path / "film.webp") as film_made:
        assert getattr(film_made, "n_frames", 1) == 4 and film_made.size == pictures.SIZE


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in demos() if name != "listen"])
def test_a_recording_shows_no_milliseconds_and_no_scores(
    name: str, gl_context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_demo("painter")
    label, texts = import_module("perframe_demos.common.overlay").Label, list[str]()
    draw = label.draw

    def drawn(self: Any, text: str, whole: bool = False) -> Any:
        texts.append(text)
        return draw(self, text, whole)

    monkeypatch.setattr(label, "draw", drawn)
    small = ["--size", "160x88"] if name in ("painter", "upscale") else []
    argv = ["--headless", "--backend", "cpu", "--frames", "4", "--save", str(tmp_path / "last.png"), *small]
    assert load_demo(name)(argv) == 0
    assert texts and not [text for text in texts if re.search(r"\d ms|^\d\.\d\d$", text)]
    if name == "faces":
        assert load_demo(name)([*argv, "--scores"]) == 0
        assert [text for text in texts if re.fullmatch(r"\d\.\d\d", text)]
