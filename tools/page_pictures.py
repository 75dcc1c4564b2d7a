"""Draws docs/pictures: what the page of a model shows, in a headless Chromium.

`python tools/page_pictures.py`. The weights of DenseNet-121 are random with seed 0, as `light_densenet121` has them.
The pictures are the project's own work, under its licence.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from perframe.command_line.inspect import write_graph

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
NAME = "light_densenet121"


def taken(page: Page, name: str, *steps: str) -> None:
    for step in steps:
        page.evaluate(step)
        page.wait_for_function("window.page.ready")
        page.wait_for_timeout(600)
    page.screenshot(path=FOLDER / name)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "model.html"
        write_graph(path, NAME, True, {}, True)
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1280, "height": 760})
        page.goto(path.as_uri())
        page.wait_for_function("window.page && window.page.ready")
        chosen = "page.reveal(page.active, page.active.graph.view.layers.findIndex(one => one.op === 'Conv') + 3)"
        taken(page, "page.png", "page.recolour('kind')", chosen)
        taken(page, "page-side-by-side.png", "page.open('both')", "page.recolour('cost')")
        taken(page, "page-time-dark.png", "byId('theme').click()", "page.open(1)", "page.recolour('time on the cpu')")
        chromium.close()


if __name__ == "__main__":
    main()
