"""The world of cells: a network that remembers them from frame to frame on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

import perframe as pf
from perframe.functional.tensor import FunctionalTensor
from perframe.resources import resource

F = pf.functional
CHANNELS = 12  # red, green, blue, alpha, and eight of which only the cells know the meaning
PLANTED = 0.6  # the radius of a new cell

Point = tuple[float, float]


def life(size: tuple[int, int], steps: int) -> pf.Model:
    """`state` and `brush` → `grown`, the state after these steps, and its `picture` (1, 4, height, width), colours
    multiplied by alpha.

    First the brush empties cells near a line, or sets one cell. It is the line from (x, y) to (x, y), in cells, then
    the radius that it empties, and that in which it sets new cells. A radius of 0 does nothing.
    """
    width, height = size
    rule = pf.load(resource("assets", "life", "life.onnx"))
    graph = pf.FunctionalGraph("life")
    state = graph.add_input("float32", (1, CHANNELS, height, width), "state")
    brush = graph.add_input("float32", (6,), "brush")
    cells = touched(state, brush)
    for _ in range(steps):
        (cells,) = F.forward(rule, cells)
    return graph.compile(grown=cells, picture=F.clamp(cells[:, :4], 0, 1))


def touched(state: FunctionalTensor, brush: FunctionalTensor) -> FunctionalTensor:
    """The state after a brush (see `life`)."""
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
    found: FunctionalTensor = F.where(distance < brush[5] * brush[5], new, kept)
    return found


class World:
    """Cells that live on a backend. Their state never leaves it."""

    def __init__(self, backend: pf.BackendType, ctx: Any, size: tuple[int, int], steps: int) -> None:
        self._worker = pf.Worker(life(size, steps), backend, ctx, carry={"grown": "state"})
        self._brush = self._worker.empty_input("brush")
        self._brushed: list[float] | None = None

    def clear(self) -> None:
        """Empty the world."""
        self._worker.reset()

    def grow(self, brush: list[float] | None = None) -> pf.Tensor:
        """Apply the brush (see `life`), let the cells step, and return their picture, which may be pending."""
        brush = brush or [0.0] * 6
        if brush != self._brushed:
            self._brush.upload(np.array(brush, np.float32))
            self._brushed = brush
        return self._worker.schedule(self._brush).peek_output("picture")

    @property
    def state(self) -> pf.Tensor:
        """All channels of the cells; the world owns it."""
        return self._worker.state()

    def release(self) -> None:
        """Free all that it holds."""
        self._worker.release()
        self._brush.release()


def wound(start: Point, end: Point, radius: float) -> list[float]:
    """The brush that empties the cells along a line."""
    return [*start, *end, radius, 0.0]


def plant(at: Point) -> list[float]:
    """The brush that sets one cell."""
    middle = int(at[0]) + 0.5, int(at[1]) + 0.5
    return [*middle, *middle, 0.0, PLANTED]
