"""The script of the demo: pen, network, and a board on which its layers are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import perframe as pf
from perframe.host import Event, KeyEvent, MouseButtonEvent

from ..common.drawing import Captions, FullScreen
from ..common.models import sides
from ..common.shown import ShownTensor
from ..common.stage import Stage
from .layers import MOSAICS, SIDE, Pen, Point, seen_inside

# Left, top, width, height of each picture, for a board of 1280 × 720.
BOARD = {
    "ink": (48, 104, 568, 568),
    "edges": (672, 104, 288, 288),
    "parts": (984, 104, 252, 168),
    "shapes": (984, 328, 252, 63),
    "probabilities": (672, 452, 564, 176),
}
TITLES = {"ink": "draw here", "edges": "edges, 16 filters", "parts": "parts, 24 filters", "shapes": "shapes, 64"}
# What the demo writes until the user does: a 3, and then a 2. Each takes this number of frames.
OWN = (
    "32,24 46,17 60,19 66,30 60,41 47,46 62,50 70,62 64,76 48,82 30,76",
    "32,28 42,18 57,17 67,27 64,42 50,58 32,79 50,78 70,79",
)  # x,y in hundredths
OWN_FRAMES, OWN_PAUSE = 40, 30


class DigitsView(pf.Script):
    """Lets the user write, and shows what each layer makes of it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.pen = Pen()
        self._is_touched = False
        self._is_new = True  # whether the network has not seen the ink yet
        self._last: Point | None = None

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx = self._stage, self.app.ctx
        self.worker = pf.Worker(seen_inside(), stage.backend, stage.worker_ctx)
        self._ink = self.worker.empty_input("ink")
        self._sheet = ctx.texture((SIDE, SIDE), 1, dtype="f4")
        self._sheet.filter = ctx.NEAREST, ctx.NEAREST
        shapes = {output.name: tuple(sides(output)) for output in self.worker.model.outputs}
        self.shown = {name: ShownTensor(ctx, shape, stage) for name, shape in shapes.items()}
        self._board = FullScreen(ctx, Path(__file__).with_name("board.glsl"))
        self._captions = Captions(ctx)

    def update(self, frame: pf.Frame) -> None:
        """Write, and run the network if there is new ink."""
        self._write(frame.index)
        busy = [name for name, shown in self.shown.items() if shown.pending]
        if not self._is_new or busy:
            return
        self._is_new = False
        self._ink.upload(self.pen.ink)
        self._sheet.write(self.pen.ink)
        self.worker.schedule(self._ink)
        for name, shown in self.shown.items():
            shown.take(self.worker.peek_output(name))

    def render(self, frame: pf.Frame) -> None:
        """Draw the board."""
        size = self.app.size
        self._board.set(size=size, **{f"{name}_at": self._place(name) for name in BOARD})
        self._board.set(**{f"{name}_tiles": (columns, rows) for name, (rows, columns) in MOSAICS.items()})
        textures = {name: shown.texture for name, shown in self.shown.items()}
        self._board.draw(ink=self._sheet, **textures)
        scale = size[1] / 720
        for name, title in TITLES.items():
            left, top, width, _ = self._place(name)
            self._captions.draw(title, size, (left + width / 2, top - 42 * scale))
        left, top, width, height = self._place("probabilities")
        for digit in range(10):
            self._captions.draw(str(digit), size, (left + width * (digit + 0.5) / 10, top + height + 8 * scale))
        self._captions.draw(str(self._stage.backend), size, name="status")

    def on_event(self, event: Event) -> None:
        """Wipe the sheet."""
        wiped = isinstance(event, MouseButtonEvent) and event.pressed and event.button == "right"
        if wiped or (isinstance(event, KeyEvent) and event.pressed and event.key == "space"):
            self._wipe()
            self._is_touched = True

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        shown = self.shown.values()
        things: tuple[Any, ...] = (self.worker, self._ink, self._sheet, self._board, self._captions, *shown)
        for thing in things:
            thing.release()

    def _write(self, index: int) -> None:
        """The user's stroke of this frame, or the demo's own."""
        if "left" in self.app.input.buttons:
            if not self._is_touched:
                self._wipe()
            self._is_touched = True
            left, top, width, height = self._place("ink")
            x, y = self.app.input.mouse_position
            now = (x - left) / width, (y - top) / height
            self._stroke(self._last or now, now)
            self._last = now
            return
        self._last = None
        if not self._is_touched:
            number, at = divmod(index, OWN_FRAMES + OWN_PAUSE)
            if at == 0:
                self._wipe()
            if at < OWN_FRAMES:
                way = OWN[number % len(OWN)]
                self._stroke(_along(way, at / OWN_FRAMES), _along(way, (at + 1) / OWN_FRAMES))

    def _stroke(self, start: Point, end: Point) -> None:
        self.pen.draw(start, end)
        self._is_new = True

    def _wipe(self) -> None:
        self.pen.wipe()
        self._is_new = True

    def _place(self, name: str) -> tuple[float, float, float, float]:
        """Where a picture is, in pixels: the board keeps its shape, in the middle."""
        width, height = self.app.size
        scale = min(width / 1280, height / 720)
        left, top, wide, high = BOARD[name]
        x, y = (width - 1280 * scale) / 2, (height - 720 * scale) / 2
        return x + left * scale, y + top * scale, wide * scale, high * scale


def _along(way: str, part: float) -> Point:
    """The point of a way of straight lines, `part` of its points along."""
    across, down = np.array([point.split(",") for point in way.split()], float).T / 100
    at = part * (len(across) - 1)
    return float(np.interp(at, np.arange(len(across)), across)), float(np.interp(at, np.arange(len(down)), down))
