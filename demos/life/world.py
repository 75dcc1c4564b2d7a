"""The world of cells: two networks, which hand the state to each other on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

import perframe as pf
from perframe.resources import resource

F = pf.functional
CHANNELS = 12  # red, green, blue, alpha, and eight of which only the cells know the meaning
PLANTED = 0.6  # the radius of a new cell

Point = tuple[float, float]


def growth(steps: int) -> pf.Model:
    """`state` → `grown`, after these steps, and its `picture` (1, 4, height, width), colours multiplied by alpha."""
    rule = pf.load(resource("assets", "life", "life.onnx"))
    graph = pf.FunctionalGraph("growth")
    state = graph.add_input("float32", (1, CHANNELS, "height", "width"), "state")
    for _ in range(steps):
        (state,) = F.forward(rule, state)
    return graph.compile(grown=state, picture=F.clamp(state[:, :4], 0, 1))


def touch() -> pf.Model:
    """`state` and `brush` → `touched`: cells near a line are emptied, or one cell is set.

    `brush` is the line from (x, y) to (x, y), in cells, then the radius that it empties, and that in which it sets new
    cells. A radius of 0 does nothing.
    """
    graph = pf.FunctionalGraph("touch")
    state = graph.add_input("float32", (1, CHANNELS, "height", "width"), "state")
    brush = graph.add_input("float32", (6,), "brush")
    across = F.arange(state.size(3)).float() + 0.5 - brush[0]
    down = (F.arange(state.size(2)).float() + 0.5 - brush[1]).unsqueeze(1)
    along_x, along_y = brush[2] - brush[0], brush[3] - brush[1]
    length = F.maximum(along_x * along_x + along_y * along_y, F.tensor([1e-6]))
    part = F.clamp((across * along_x + down * along_y) / length, 0, 1)
    away_x, away_y = across - part * along_x, down - part * along_y
    distance = away_x * away_x + away_y * away_y
    new = np.zeros((1, CHANNELS, 1, 1), np.float32)
    new[:, 3:] = 1
    kept = F.where(distance < brush[4] * brush[4], 0.0, state)
    return graph.compile(touched=F.where(distance < brush[5] * brush[5], new, kept))


class World:
    """Cells that live on a backend. Their state never leaves it.

    One worker applies the brush, and another lets the cells grow. Each reads what the other one has written.
    """

    def __init__(self, backend: pf.BackendType, ctx: Any, size: tuple[int, int], steps: int) -> None:
        width, height = size
        self._touch, self._grow = pf.Worker(touch(), backend, ctx), pf.Worker(growth(steps), backend, ctx)
        self._empty = np.zeros((1, CHANNELS, height, width), np.float32)
        self._state = self._touch.empty_input("state", self._empty.shape)
        self._brush = self._touch.empty_input("brush")
        self._brushed: list[float] | None = None
        self.clear()

    def clear(self) -> None:
        """Empty the world."""
        self._state.upload(self._empty)
        self._newest = self._state

    def grow(self, brush: list[float] | None = None) -> pf.Tensor:
        """Apply the brush (see `touch`), let the cells step, and return their picture, which may be pending."""
        brush = brush or [0.0] * 6
        if brush != self._brushed:
            self._brush.upload(np.array(brush, np.float32))
            self._brushed = brush
        touched = self._touch.schedule(self._newest, self._brush).peek_output()
        self._newest = self._grow.schedule(touched).peek_output("grown")
        picture: pf.Tensor = self._grow.peek_output("picture")
        return picture

    @property
    def state(self) -> pf.Tensor:
        """All channels of the cells; the world owns it."""
        return self._newest

    def release(self) -> None:
        """Free all that it holds."""
        for thing in (self._touch, self._grow, self._state, self._brush):
            thing.release()


def wound(start: Point, end: Point, radius: float) -> list[float]:
    """The brush that empties the cells along a line."""
    return [*start, *end, radius, 0.0]


def plant(at: Point) -> list[float]:
    """The brush that sets one cell."""
    middle = int(at[0]) + 0.5, int(at[1]) + 0.5
    return [*middle, *middle, 0.0, PLANTED]
