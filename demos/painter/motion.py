"""The positions of the camera and of the split line. They are functions of time alone, so that all recordings agree."""

from __future__ import annotations

from math import cos, sin, tau

Size = tuple[int, int]
Window = tuple[float, float, float, float]
"""A part of a picture in its pixels: x, y of the top left corner, width, height."""


def whole(size: Size, aspect: float) -> Window:
    """The largest part of a picture that is `aspect` times as wide as it is high, from its middle."""
    width = min(size[0], size[1] * aspect)
    height = width / aspect
    return (size[0] - width) / 2, (size[1] - height) / 2, width, height


def pan_and_zoom(size: Size, aspect: float, time: float) -> Window:
    """A window that wanders over a still picture. The periods, in seconds, have no common measure: no way repeats."""
    _, _, width, height = whole(size, aspect)
    zoom = 1.22 - 0.12 * cos(tau * time / 37)
    width, height = width / zoom, height / zoom
    across, down = 0.5 + 0.5 * sin(tau * time / 53), 0.5 + 0.5 * sin(tau * time / 41 - 0.5)  # faces are rather high up
    return (size[0] - width) * across, (size[1] - height) * down, width, height


def sweep(time: float) -> float:
    """Where the split line is, 0 at the left edge and 1 at the right one."""
    return 0.5 - 0.35 * sin(tau * time / 24)
