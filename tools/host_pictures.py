"""Draws docs/pictures/script-error.png: what a window shows when a script fails.

`python tools/host_pictures.py`. The picture behind it is the project's own, and so is this one.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

import perframe as pf
from perframe.resources import resource

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"


class Painter(pf.Script):
    """Paints, and fails in each frame as a script may."""

    def start(self) -> None:
        ctx, picture = self.app.ctx, Image.open(resource("assets", "painter", "scene.jpg")).convert("RGBA")
        self.texture = ctx.texture(picture.size, 4, picture.tobytes())
        self.worker = pf.Worker(pf.load(resource("assets", "painter", "painter.onnx")), "gpu_pixel", ctx)
        self.converter = pf.TextureConverter(ctx)
        self.image = self.worker.empty_input(shape=(1, 3, 360, 640))

    def update(self, frame: pf.Frame) -> None:
        self.converter.to_tensor(self.texture, self.image)
        self.worker.schedule(self.image)
        if frame.index == 2:
            self.app.screenshot(FOLDER / "script-error.png")
        self.brightness = 1 / self.app.input.scroll[1]

    def render(self, frame: pf.Frame) -> None:
        self.converter.render_to_screen(self.worker.peek_output())


if __name__ == "__main__":
    pf.App(size=(640, 360), headless=True).run(Painter(), frames=4)
    path = FOLDER / "script-error.png"
    Image.open(path).quantize(96).save(path, optimize=True)
