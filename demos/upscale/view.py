"""The script of the demo: scene, network, and both pictures of one moment beside each other."""

from __future__ import annotations

from math import sin, tau
from pathlib import Path
from typing import TYPE_CHECKING, Any

import perframe as pf
from perframe.resources import resource

from ..common.drawing import Captions, FullScreen, texture_of
from ..common.overlay import FrameTimer
from ..common.shown import ShownTensor
from ..common.stage import Stage
from .scene import Scene

if TYPE_CHECKING:
    import moderngl
    from numpy.typing import NDArray

RADIUS = 0.18  # of the loupe, of the window's height
UNLIMITED = 1e6  # milliseconds
UPRIGHT = pf.TextureTransform(coord_origin="bottom_left")


class UpscaleView(pf.Script):
    """Renders the scene at half of the window's size, and lets the network enlarge it within its budget.

    While the network works on one moment, the last one is shown: bilinear and network are always of the same moment.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage, self._options = stage, stage.options
        self._split = 0.5
        self._timer = FrameTimer()
        self._text = ""

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx, size = self._stage, self.app.ctx, self._options.size
        width, height = size
        self.scene = Scene(ctx)
        sides = {"batch": 1, "height": height, "width": width}
        model = pf.load(resource("assets", "upscale", "upscale.onnx"), dims=sides)
        self.worker = pf.Worker(model, stage.backend, stage.worker_ctx)
        self._converter = pf.TextureConverter(ctx, None if stage.on_cpu else stage.backend)
        self._frame = pf.Tensor.empty((1, 3, height, width), "float32")
        self.shown = ShownTensor(ctx, (1, 3, 2 * height, 2 * width), stage)
        self._targets = [_target(ctx, size) for _ in range(2)]  # of the moment that is shown, and of the next one
        self._compare = FullScreen(ctx, Path(__file__).with_name("compare.glsl"))
        self._captions = Captions(ctx)

    async def update(self, frame: pf.Frame) -> None:
        """Render a moment, and enlarge it. This takes as many frames as the budget makes it."""
        target, (width, height) = self._targets[1], self._options.size
        target.use()
        self.scene.draw(self._options.at + frame.time, width / height)
        self.app.framebuffer.use()
        rendered = self._converter.to_tensor(texture_of(target), self._frame, UPRIGHT)
        given: pf.Tensor | NDArray[Any] = rendered
        if self._stage.on_cpu:
            request = self._stage.asked(rendered)
            given = request.result() if request.done else await request
        budget = UNLIMITED if self._stage.in_step else self._options.budget
        await self.app.schedule(self.worker, given, budget, owner=self)
        self.shown.take(self.worker.peek_output())
        while self.shown.pending:
            await pf.next_frame()
        self._targets.reverse()
        self._timer.tick()

    def render(self, frame: pf.Frame) -> None:
        """Draw both pictures, and the loupe."""
        width, height = self.app.size
        mouse = self.app.input.mouse_position
        if "left" in self.app.input.buttons:
            self._split = min(0.99, max(0.01, mouse[0] / width))
        if not any(mouse):  # the user has not moved it yet
            across, down = sin(tau * frame.time / 29 + 0.5), sin(tau * frame.time / 23)
            mouse = width * (0.5 + 0.22 * across), height * (0.36 + 0.1 * down)
        radius = RADIUS * height
        middle = (
            min(width - 2.1 * radius, max(2.1 * radius, mouse[0])),
            min(height - 1.5 * radius, max(1.1 * radius, mouse[1])),
        )
        self._compare.set(size=(width, height), split=self._split * width, mouse=mouse, middle=middle, radius=radius)
        self._compare.draw(small=texture_of(self._targets[0]), large=self.shown.texture)
        for text, side in (("bilinear", -1), ("network", 1)):
            self._captions.draw(text, (width, height), (middle[0] + side * 1.04 * radius, middle[1] + 1.08 * radius))
        if self._timer.is_due() or not self._text:
            time = self._timer.milliseconds
            self._text = f"{self._stage.backend}  ·  {width // 2} x {height // 2} to {width} x {height}"
            self._text += "" if time is None or self._stage.in_step else f"  ·  {time:.0f} ms"
        self._captions.draw(self._text, (width, height), name="status")

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        held = (self.worker, self.scene, self.shown, self._converter, self._frame, self._compare, self._captions)
        for thing in held:
            thing.release()
        for target in self._targets:
            for owned in (*target.color_attachments, target.depth_attachment, target):
                owned.release()


def _target(ctx: moderngl.Context, size: tuple[int, int]) -> moderngl.Framebuffer:
    """A framebuffer to render into, whose picture the shader samples between pixels."""
    texture = ctx.texture(size, 4)
    texture.repeat_x = texture.repeat_y = False
    return ctx.framebuffer([texture], ctx.depth_renderbuffer(size))
