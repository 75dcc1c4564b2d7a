"""The script of the demo: brush, cells, picture."""

from __future__ import annotations

from pathlib import Path

import perframe as pf
from perframe.host import Event, KeyEvent, MouseButtonEvent

from ..common.drawing import Captions, FullScreen
from ..common.shown import ShownTensor
from ..common.stage import Stage
from .world import Point, World, plant, wound

RADIUS = 4.5  # of a wound, in cells
GARDEN = tuple((x, y) for y in (0.27, 0.73) for x in (0.14, 0.38, 0.62, 0.86))
CUTS = (
    ((0.30, 0.10), (0.45, 0.42)),
    ((0.55, 0.80), (0.70, 0.60)),
    ((0.80, 0.20), (0.93, 0.45)),
    ((0.10, 0.60), (0.20, 0.90)),
)
FIRST_CUT, BETWEEN_CUTS, CUTTING = 132, 24, 6  # frames, until the user touches the world


class LifeView(pf.Script):
    """Shows a world of cells, and lets the user wound it. Until the user touches it, the world wounds itself."""

    def __init__(self, stage: Stage, size: tuple[int, int], steps: int) -> None:
        self._stage, self._size, self._steps = stage, size, steps
        self._is_touched = False
        self._count = 0  # of frames in which the cells grew
        self._last: Point | None = None  # where the mouse was
        self._planted: list[Point] = []

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx = self._stage, self.app.ctx
        self.world = World(stage.backend, stage.worker_ctx, self._size, self._steps)
        self._shown = ShownTensor(ctx, (1, 4, self._size[1], self._size[0]), stage)
        self._cells = FullScreen(ctx, Path(__file__).with_name("cells.glsl"))
        self._captions = Captions(ctx)

    def update(self, frame: pf.Frame) -> None:
        """Let the cells grow, unless their last picture is still on its way."""
        if self._shown.pending:
            return
        brush = self._brush()
        self._shown.take(self.world.grow(brush))
        self._count += 1

    def render(self, frame: pf.Frame) -> None:
        """Draw the cells."""
        self._cells.set(size=self.app.size, cells=self._size)
        self._cells.draw(picture=self._shown.texture)
        text = f"{self._stage.backend}  ·  {self._size[0]} x {self._size[1]} cells  ·  step {self._count * self._steps}"
        self._captions.draw(text, self.app.size, name="status")

    def on_event(self, event: Event) -> None:
        """Plant a cell, or begin anew."""
        if isinstance(event, MouseButtonEvent) and event.pressed and event.button == "right":
            self._planted.append(self._cell(event.position))
        if isinstance(event, KeyEvent) and event.pressed and event.key == "space":
            self.world.clear()
            self._count, self._is_touched = 0, False

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        for thing in (self._shown, self._cells, self._captions, self.world):
            thing.release()

    def _brush(self) -> list[float] | None:
        """The next touch: the user's, or the demo's own."""
        if self._count < len(GARDEN):
            return plant(self._place(GARDEN[self._count]))
        held, now = "left" in self.app.input.buttons, self._cell(self.app.input.mouse_position)
        before, self._last = self._last or now, now if held else None
        if held or self._planted:
            self._is_touched = True
            return plant(self._planted.pop(0)) if self._planted else wound(before, now, RADIUS)
        return None if self._is_touched else self._own_cut()

    def _own_cut(self) -> list[float] | None:
        since = self._count - FIRST_CUT
        if since < 0 or since % BETWEEN_CUTS >= CUTTING:
            return None
        start, end = (self._place(point) for point in CUTS[since // BETWEEN_CUTS % len(CUTS)])
        parts = [(since % BETWEEN_CUTS + more) / CUTTING for more in (0, 1)]
        from_, to = ((start[0] + (end[0] - start[0]) * p, start[1] + (end[1] - start[1]) * p) for p in parts)
        return wound(from_, to, RADIUS * 0.6)

    def _place(self, point: Point) -> Point:
        """A place in 0..1 in cells."""
        return point[0] * self._size[0], point[1] * self._size[1]

    def _cell(self, position: Point) -> Point:
        """The cell under a pixel."""
        return self._place((position[0] / self.app.size[0], position[1] / self.app.size[1]))
