"""The script of the demo: the flock, and a shader that draws a creature for each column of its state."""

from __future__ import annotations

from math import cos, sin, tau
from pathlib import Path
from typing import Any

import perframe as pf
from perframe.host import Event, KeyEvent

from ..common.drawing import Captions, FullScreen
from ..common.shown import ShownTensor
from ..common.stage import Stage
from .world import HALF, Flock


class AgentsView(pf.Script):
    """Shows a flock, and lets the mouse frighten it. Until the mouse moves, a hawk of its own flies over it."""

    def __init__(self, stage: Stage, creatures: int, seed: int) -> None:
        self._stage, self._creatures, self._seed = stage, creatures, seed
        self._hawk = (0.0, 0.0, 0.0)

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx = self._stage, self.app.ctx
        self.flock = Flock(stage.backend, stage.worker_ctx, self._creatures, self._seed)
        self._shown = ShownTensor(ctx, (1, 4, 1, self._creatures), stage, dtype="f4")
        folder = Path(__file__).parent
        self._sky = FullScreen(ctx, folder / "sky.glsl")
        self._program = ctx.program(
            vertex_shader=(folder / "creature.vert").read_text(encoding="utf-8"),
            fragment_shader=(folder / "creature.frag").read_text(encoding="utf-8"),
        )
        self._creature = ctx.vertex_array(self._program, [])
        self._captions = Captions(ctx)

    def update(self, frame: pf.Frame) -> None:
        """Let them live on, unless their last places are still on the way."""
        if self._shown.pending:
            return
        self._hawk = self._hawk_now(frame.time)
        self._shown.take(self.flock.step(self._hawk))

    def render(self, frame: pf.Frame) -> None:
        """Draw the sky, the hawk and the creatures."""
        ctx, size = self.app.ctx, self.app.size
        self._sky.set(size=size, extent=HALF, hawk=self._hawk)
        self._sky.draw()
        self._shown.texture.use(0)
        self._set("creatures", 0)
        self._set("extent", HALF)
        ctx.enable(ctx.BLEND)
        ctx.blend_func = ctx.SRC_ALPHA, ctx.ONE_MINUS_SRC_ALPHA
        self._creature.render(vertices=3, instances=self._creatures)
        ctx.disable(ctx.BLEND)
        self._captions.draw(f"{self._stage.backend}  ·  {self._creatures} creatures", size, name="status")

    def on_event(self, event: Event) -> None:
        """Scatter them."""
        if isinstance(event, KeyEvent) and event.pressed and event.key == "space":
            self.flock.scatter()

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        for thing in (self._shown, self._sky, self._creature, self._program, self._captions, self.flock):
            thing.release()

    def _hawk_now(self, time: float) -> tuple[float, float, float]:
        mouse, (width, height) = self.app.input.mouse_position, self.app.size
        if any(mouse):
            fright = 0.0 if "left" in self.app.input.buttons else 1.0
            return (mouse[0] / width * 2 - 1) * HALF[0], (1 - mouse[1] / height * 2) * HALF[1], fright
        return 1.15 * sin(tau * time / 23), 0.55 * cos(tau * time / 15), 1.0

    def _set(self, name: str, value: Any) -> None:
        uniform: Any = self._program[name]
        uniform.value = value
