"""Draws what the cells grow into: a butterfly, in premultiplied RGBA."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

_DARK, _ORANGE, _YELLOW, _BLUE, _WHITE = "#2a1a3e", "#f4702b", "#ffc53d", "#3fa7e0", "#fff6e0"
_SCALE = 16  # drawn so much larger, and then shrunk, for smooth edges


def draw_target(size: int = 28, margin: int = 6) -> np.ndarray:
    """The butterfly as (4, size + 2 margin, size + 2 margin) float32; colours are multiplied by alpha."""
    side = size * _SCALE
    picture = Image.new("RGBA", (side, side))
    pen = ImageDraw.Draw(picture)

    def ellipse(x: float, y: float, wide: float, high: float, color: str) -> None:
        """On both sides of the middle; x and y are 0..1, x from the middle."""
        for sign in (-1, 1):
            middle = 0.5 + sign * x
            pen.ellipse([side * v for v in (middle - wide, y - high, middle + wide, y + high)], fill=color)

    for grown, upper, lower in ((0.0, _DARK, _DARK), (0.045, _ORANGE, _BLUE)):
        ellipse(0.20, 0.72, 0.19 - grown, 0.21 - grown, lower)
        ellipse(0.26, 0.34, 0.24 - grown, 0.26 - grown, upper)
    ellipse(0.30, 0.29, 0.11, 0.12, _YELLOW)
    ellipse(0.21, 0.74, 0.07, 0.08, _WHITE)
    pen.ellipse([side * v for v in (0.44, 0.20, 0.56, 0.86)], fill=_DARK)
    for sign in (-1, 1):
        pen.line([(side * 0.5, side * 0.25), (side * (0.5 + sign * 0.13), side * 0.04)], fill=_DARK, width=_SCALE)
    colors = np.asarray(picture, np.float32) / 255
    colors[..., :3] *= colors[..., 3:]
    small = colors.reshape(size, _SCALE, size, _SCALE, 4).mean((1, 3))
    return np.pad(small, ((margin, margin), (margin, margin), (0, 0))).transpose(2, 0, 1)
