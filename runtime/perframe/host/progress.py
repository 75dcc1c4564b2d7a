"""A bar over the picture while kernels are compiled."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from perframe.host.frame import Frame
from perframe.host.script import Script

_PAPER, _INK, _BAR = (16, 18, 24), (236, 238, 242), (70, 110, 200)


class HasProgress(Protocol):
    """A worker, as the host sees it."""

    @property
    def progress(self) -> float:
        """The share of the work that is done, from 0 to 1."""


class ProgressBar(Script):
    """A script that draws a bar along the bottom of the surface while a worker's kernels are compiled.

    It draws nothing as soon as they are, and begins again where new ones are needed. `text` stands on the bar.
    """

    is_overlay = True

    def __init__(self, worker: HasProgress, text: str = "compiling kernels") -> None:
        self.worker, self.text = worker, text
        self.shown = False
        """Whether the bar is on the screen."""
        self._drawn: tuple[Any, Any] = (None, None)

    def render(self, _frame: Frame) -> None:
        """Draw the bar."""
        progress = self.worker.progress
        self.shown = progress < 1
        draw_over = getattr(self.app.surface, "draw_over", None)  # a surface of the caller's may have none
        if not self.shown or draw_over is None:
            return
        key = int(progress * 100), self.app.size
        if self._drawn[0] != key:
            self._drawn = key, _draw(f"{self.text}: {key[0]} %", progress, self.app.size)
        draw_over(self._drawn[1])


def _draw(text: str, progress: float, size: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bar as a picture, H×W×3, as wide as the surface."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = size[0], min(size[1], max(18, size[1] // 24))
    picture = Image.new("RGB", (width, height), _PAPER)
    pen = ImageDraw.Draw(picture)
    if done := round(progress * width):
        pen.rectangle((0, 0, done - 1, height), fill=_BAR)
    font = ImageFont.load_default(size=max(10, height * 2 // 3))
    pen.text((8, height // 2), text, fill=_INK, font=font, anchor="lm")
    return np.asarray(picture)
