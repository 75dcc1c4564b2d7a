"""A surface without GL: a picture in host memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.host.input import Event
from perframe.host.pixels import Pixels, fit


class BlankSurface:
    """A surface that shows nothing, and keeps the picture of `present`."""

    ctx = None
    framebuffer = None
    should_close = False

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self._pixels: Pixels | None = None

    def poll_events(self) -> list[Event]:
        """Return no events: this surface has none."""
        return []

    def begin_frame(self) -> None:
        """Forget the picture."""
        self._pixels = None

    def present(self, pixels: np.ndarray[Any, Any]) -> None:
        """Keep a copy of the picture, stretched to the surface. Raises InputError if it is not a picture."""
        self._pixels = fit(pixels, self.size).copy()

    def draw_over(self, pixels: Pixels) -> None:
        """Copy a picture over the lower left corner."""
        picture = self.read_pixels()
        picture[picture.shape[0] - pixels.shape[0] :, : pixels.shape[1]] = pixels
        self._pixels = picture

    def read_pixels(self) -> Pixels:
        """This frame's picture; black if there is none."""
        if self._pixels is None:
            return np.zeros((self.size[1], self.size[0], 3), np.uint8)
        return self._pixels.copy()

    def swap(self) -> None:
        """Do nothing: there is no screen."""

    def release(self) -> None:
        """Forget the picture."""
        self._pixels = None
