"""The site: it builds without a warning, has all pages, loads nothing from elsewhere, and fits narrow screens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert "not included in the" not in done.stderr, "each page is in the navigation"
    return folder


@pytest.mark.slow
def test_all_functions_have_a_place(site: Path) -> None:
    import perframe.functional as functional

    page = (site / "api" / "functional.html").read_text(encoding="utf-8")
    assert [name for name in functional.__all__ if f'id="{name}"' not in page] == []


@pytest.mark.slow
def test_all_public_names_have_a_place(site: Path) -> None:
    import perframe as pf

    pages = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    inside = {"layers", "functional", "jobs", "__version__"}  # of pages on layers and jobs
    assert [name for name in pf.__all__ if name not in inside and f".{name}" not in pages] == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_screen(browser: Any, site: Path, width: int) -> None:
    page, elsewhere, wide = browser.new_page(viewport={"width": width, "height": 900}), set(), []
    page.on("request", lambda one: one.url.startswith(("file:", "data:", "blob:")) or elsewhere.add(one.url))
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(path.name)
    page.close()
    assert (wide, elsewhere) == ([], set())


SEARCHES = [
    ("TextureTransform", "textures.html"),
    ("letterbox", "textures.html"),
    ("to_tensor", "textures.html"),
    ("peek_output", "workers.html"),
    ("quantize", "quantize.html"),
]


@pytest.mark.slow
@pytest.mark.parametrize("start", ["index.html", "recipes/guests.html"])
def test_search_works_from_a_folder(browser: Any, site: Path, start: str) -> None:
    page, missed = browser.new_page(viewport={"width": 1280, "height": 900}), []
    for words, wanted in SEARCHES:
        page.goto((site / start).as_uri())
        page.click(".md-search__input")
        page.keyboard.type(words)
        page.wait_for_selector(".md-search-result__item")
        page.wait_for_timeout(300)  # results come while the words are typed
        links = page.evaluate(
            "[...document.querySelectorAll('.md-search-result__link')].slice(0, 10).map(one => one.href)"
        )
        if not any(f"/{wanted}" in link for link in links):
            missed.append((words, links))
    page.close()
    assert not missed


@pytest.mark.slow
def test_flowcharts_are_drawn(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "architecture.html").as_uri())
    names = page.evaluate("[...document.querySelectorAll('.flowchart svg text')].map(one => one.textContent)")
    page.close()
    assert {"backends", "ir", "tensor"} <= set(names)


def test_the_site_has_five_sections() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    sections = re.findall(r"^  - ([\w ]+):$", text[text.index("\nnav:") :], re.MULTILINE)
    assert sections == ["Five minutes", "Tutorial", "Guides", "Reference", "Background"]
