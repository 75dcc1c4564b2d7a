"""A bar over the picture while kernels are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.tensor.compilation import compiling

_PAPER, _INK, _BAR = (16, 18, 24), (236, 238, 242), (70, 110, 200)


PATIENCE = 0.5  # seconds of compiling before an app shows it


class CompilingBar:
    """Draws a bar along the bottom of a window while kernels are compiling. Other surfaces may be recorded."""

    def __init__(self) -> None:
        self._picture = ProgressPicture()

    def show(self, surface: Any) -> None:
        """Draw the bar, if the surface shows progress and kernels have been compiling for a moment."""
        if compiling.is_under_way and compiling.seconds > PATIENCE and getattr(surface, "shows_progress", False):
            surface.draw_over(self._picture.of("compiling kernels", compiling.share, surface.size))


class ProgressPicture:
    """The picture of a bar. It is drawn again when the bar has grown."""

    def __init__(self) -> None:
        self._key: Any = None
        self._drawn: Any = None

    def of(self, text: str, progress: float, size: tuple[int, int]) -> Any:
        """Return the picture, H×W×3, as wide as the surface."""
        key = text, int(progress * 100), size
        if self._key != key:
            self._key, self._drawn = key, _draw(f"{text}: {key[1]} %", progress, size)
        return self._drawn


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
