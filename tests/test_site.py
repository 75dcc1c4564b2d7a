"""The site: it builds without a warning, has all pages, loads nothing from elsewhere, and fits narrow screens."""

from __future__ import annotations

import os
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
