"""Draws docs/pictures: the page of a model and of a profile in a headless Chromium, and figures over a picture.

`python tools/page_pictures.py`. The weights of all networks are random with seed 0, as `light_NAME` has them.
The pictures are the project's own work, under its licence.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

import perframe as pf
from perframe.command_line.commands.inspect import write_graph
from perframe.command_line.commands.profile import measure
from perframe.command_line.sources import likely_arrays, likely_dims, loaded_model
from perframe.profiling.timeline import write_page

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
        write_graph(path, NAME, True, {}, "cpu")
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1280, "height": 760})
        page.goto(path.as_uri())
        page.wait_for_function("window.page && window.page.ready")
        chosen = "page.reveal(page.active, page.active.graph.view.layers.findIndex(one => one.op === 'Conv') + 3)"
        taken(page, "page.png", "page.recolour('kind')", chosen)
        taken(page, "page-side-by-side.png", "page.open('both')", "page.recolour('cost')")
        taken(page, "page-time-dark.png", "byId('theme').click()", "page.open(1)", "page.recolour('time on the cpu')")
        draw_timeline(chromium, Path(folder) / "timeline.html")
        chromium.close()
    draw_overlay()


def draw_timeline(chromium: Browser, path: Path) -> None:
    """Two frames of SqueezeNet on the CPU."""
    model = loaded_model("light_squeezenet")
    profile = measure(model, likely_arrays(model, likely_dims(model.inputs)), "cpu", 40, {})
    write_page(path, profile, title="SqueezeNet on cpu")
    page = chromium.new_page(viewport={"width": 1280, "height": 620})
    page.goto(path.as_uri())
    page.evaluate("[view.begin, view.length] = [tracks[0].events[20][0], 2 * tracks[0].events[20][1]]; draw()")
    page.screenshot(path=FOLDER / "timeline.png")


class Shower(pf.Script):
    """Shows SqueezeNet's input, and takes a picture of it with the figures."""

    def start(self) -> None:
        model = loaded_model("light_squeezenet")
        self.worker = pf.Worker(model, "cpu")  # a software driver's times would say nothing about a GPU
        self.inputs = likely_arrays(model, likely_dims(model.inputs))
        self.worker.warmup(self.inputs)
        rows, columns = np.mgrid[:360, :640] / 360
        self.picture = (np.stack([rows, columns / 2, 1 - rows], 2) * 200).astype(np.uint8)

    async def update(self, frame: pf.Frame) -> None:
        await self.worker.schedule(self.inputs).peek_output().readback_request()
        if frame.index > 300:
            self.app.screenshot(FOLDER / "overlay.png")
            self.app.quit()

    def render(self, _frame: pf.Frame) -> None:
        self.app.surface.present(self.picture)

    def destroy(self) -> None:
        self.worker.release()


def draw_overlay() -> None:
    pf.App(size=(640, 360), headless=True).run(Shower(), pf.profiling.ProfileOverlay(shown=True))


if __name__ == "__main__":
    main()
