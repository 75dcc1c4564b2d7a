"""The script of the demo: the network in the shader, the texture of as many bytes, and the marble."""

from __future__ import annotations

from math import sin, tau
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import perframe as pf
from perframe.host import Event, ScrollEvent
from perframe.resources import resource

from ..common.drawing import Captions, FullScreen
from ..common.stage import Stage

if TYPE_CHECKING:
    import moderngl
    from numpy.typing import NDArray

TEXELS = (36, 17, 9)  # around, from pole to pole, over time; three bytes each: as many as the network's weights have
LOOP, TURN = 12.0, 40.0  # seconds of the pattern's loop, and of a turn of the marble
DISC = 0.21  # the radius of a disc, of the window's height
MOST_ZOOM = 2000.0


class NeuralView(pf.Script):
    """Draws a marble whose color is computed by a network, or sampled from a texture, pixel by pixel."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._split, self._zoom, self._focus = 0.5, 1.0, (0.0, 0.0)

    def awake(self) -> None:
        """Compile the network into the shader, and let a worker fill the texture."""
        ctx = self.app.ctx
        model = pf.load(resource("assets", "neural", "neural.onnx"))
        self.weights = model.parameter_count
        shader = Path(__file__).with_name("marble.glsl").read_text(encoding="utf-8")
        self._marble = FullScreen(ctx, shader.replace("//@ network\n", pf.to_glsl(model, "network")))
        self.texture = _texture(ctx, sampled(model, self._stage))
        self._captions = Captions(ctx)

    def render(self, frame: pf.Frame) -> None:
        """Draw the marble and the discs."""
        width, height = self.app.size
        if "left" in self.app.input.buttons:
            self._split = min(0.99, max(0.01, self.app.input.mouse_position[0] / width))
        radius = DISC * height
        self._marble.set(
            size=(width, height),
            split=self._split * width,
            phase=frame.time / LOOP % 1.0,
            turn=frame.time / TURN * tau,
            disc=radius,
            magnify=float(self._stage.options.magnify),
            spot=(0.42 * sin(tau * frame.time / 17), 0.45 * sin(tau * frame.time / 11 + 1.3)),
            zoom=self._zoom,
            focus=self._focus,
        )
        self._marble.draw(texels=self.texture)
        size, bytes_ = (width, height), 4 * self.weights
        for text, x in (
            (f"texture · {3 * int(np.prod(TEXELS)):,} bytes", 1.15 * radius),
            (f"network · {bytes_:,} bytes", width - 1.15 * radius),
        ):
            self._captions.draw(text, size, (x, 0.5 * height + 1.1 * radius))
        self._captions.draw(f"{self.weights:,} weights in a fragment shader", size, name="status")

    def on_event(self, event: Event) -> None:
        """Zoom at the mouse."""
        if isinstance(event, ScrollEvent):
            before, (width, height) = self._zoom, self.app.size
            self._zoom = min(MOST_ZOOM, max(1.0, self._zoom * 1.15 ** event.offset[1]))
            mouse = self.app.input.mouse_position
            more = (1 / before - 1 / self._zoom) / height
            x, y = self._focus
            self._focus = x + more * (mouse[0] - width / 2), y + more * (height / 2 - mouse[1])
            if self._zoom == 1.0:
                self._focus = (0.0, 0.0)

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        for thing in (self._marble, self.texture, self._captions):
            thing.release()


def sampled(model: pf.Model, stage: Stage) -> NDArray[np.uint8]:
    """The network at the middles of TEXELS, (time, latitude, longitude, RGB), by a worker on the stage's backend."""
    columns, rows, times = TEXELS
    phase, latitude, longitude = np.meshgrid(
        (np.arange(times) + 0.5) / times,
        ((np.arange(rows) + 0.5) / rows - 0.5) * tau / 2,
        (np.arange(columns) + 0.5) / columns * tau,
        indexing="ij",
    )
    flat = np.cos(latitude)
    position = np.stack([flat * np.cos(longitude), np.sin(latitude), flat * np.sin(longitude)], -1)
    given: dict[str, Any] = {"position": position.reshape(-1, 3), "phase": phase.reshape(-1, 1)}
    with pf.Worker(model, stage.backend, stage.worker_ctx) as worker:
        worker.schedule({name: array.astype(np.float32) for name, array in given.items()})
        colors = worker.peek_output().download_to_array()
    return np.round(colors.reshape(times, rows, columns, 3) * 255).astype(np.uint8)


def _texture(ctx: moderngl.Context, texels: NDArray[np.uint8]) -> moderngl.Texture3D:
    """A texture that is sampled linearly in all directions, and closed around the marble and in time."""
    texture = ctx.texture3d(TEXELS, 3, texels.tobytes(), alignment=1)
    texture.filter = (ctx.LINEAR, ctx.LINEAR)
    texture.repeat_x = texture.repeat_z = True
    texture.repeat_y = False
    return texture
