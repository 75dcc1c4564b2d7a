"""The site: it builds without a warning, has all pages, loads nothing from elsewhere, and fits narrow screens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import site_hooks

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


def articles(site: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(site), text[text.index("<article") : text.index("</article>")]


@pytest.mark.slow
def test_headings_skip_no_level(site: Path) -> None:
    for path, article in articles(site):
        levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", article)]
        assert levels[0] == 1, path
        assert all(after <= before + 1 for before, after in pairwise(levels)), path


@pytest.mark.slow
def test_a_page_begins_with_a_sentence(site: Path) -> None:
    lacking = [path for path, article in articles(site) if not re.search(r"</h1>\s*<p>", article)]
    assert lacking == []


@pytest.mark.slow
def test_links_lead_to_files(site: Path) -> None:
    """Pages that are opened from a folder have no server, which would find the index of a folder."""
    for path in site.rglob("*.html"):
        for link in re.findall(r'href="([^"#?]+)', path.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", link):
                assert (path.parent / link).is_file(), f"{path.name}: {link}"


CONTRASTS = """() => {
    const parsed = color => { const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number); return [r, g, b, a] }
    const over = (front, back) => [0, 1, 2].map(i => front[i] * front[3] + back[i] * (1 - front[3]))
    const linear = value => value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) + 0.05
    const low = new Set()
    for (const one of document.querySelectorAll(".md-tabs__link, .md-nav__title, article p, article span, article a")) {
        const text = one.textContent.trim(), style = getComputedStyle(one), layers = []
        if (!text || !one.getClientRects().length || one.className === "headerlink") continue
        for (let at = one; at; at = at.parentElement) {
            layers.unshift(parsed(getComputedStyle(at).backgroundColor))
            if (layers[0][3] === 1) break
        }
        const back = layers.reduce((below, layer) => over(layer, below), [255, 255, 255])
        const [r, g, b, a] = parsed(style.color), front = over([r, g, b, a * style.opacity], back)
        const ratio = light(front) / light(back)
        if (Math.max(ratio, 1 / ratio) < 4.5) low.add(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`)
    }
    return [...low]
}"""


@pytest.mark.slow
@pytest.mark.parametrize("colors", ["light", "dark"])
def test_text_has_contrast(browser: Any, site: Path, colors: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=colors)
    low = {}
    for name in ("convert.html", "glsl.html", "api/frames.html"):
        page.goto((site / name).as_uri())
        low[name] = page.evaluate(CONTRASTS)
    page.close()
    assert not any(low.values()), low


def test_numbers_in_tables_keep_their_units() -> None:
    cell, code = "<td>51.1 MB, 0.01 %</td>", "<td><code>x = 7 % 3</code> 4 sides</td>"
    assert site_hooks.on_page_content(cell) == "<td>51.1&nbsp;MB, 0.01&nbsp;%</td>"
    assert site_hooks.on_page_content(code) == code


def test_the_site_has_five_sections() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    sections = re.findall(r"^  - ([\w ]+):$", text[text.index("\nnav:") :], re.MULTILINE)
    assert sections == ["Five minutes", "Tutorial", "Guides", "Reference", "Background"]
