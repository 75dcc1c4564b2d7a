"""Draw a network's output on the screen, here a framebuffer that stands for one."""

from __future__ import annotations

import numpy as np
from PIL import Image

import perframe as pf
from perframe.resources import resource


class Painter(pf.Script):
    def start(self) -> None:
        self.worker = pf.Worker(resource("assets", "painter", "painter.onnx"), "gpu_pixel", self.app.ctx)
        self.converter = pf.TextureConverter(self.app.ctx)
        scene = Image.open(resource("assets", "painter", "scene.jpg")).convert("RGB").resize((160, 96))
        self.picture = np.asarray(scene, np.float32).transpose(2, 0, 1)[None] / 255

    def update(self, frame: pf.Frame) -> None:
        self.worker.schedule(self.picture)

    def render(self, frame: pf.Frame) -> None:
        self.converter.render_to_screen(self.worker.peek_output())

    def destroy(self) -> None:
        self.converter.release()
        self.worker.release()


with pf.App(size=(320, 192), headless=True) as app:
    app.run(Painter(), frames=3)
    app.screenshot("to_the_screen.png")
print("the picture is in to_the_screen.png")
