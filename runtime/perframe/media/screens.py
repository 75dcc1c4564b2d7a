"""What is on a screen, or on an app's surface."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from perframe.errors import InputError, MissingExtraError
from perframe.media.feeds import Feed
from perframe.media.picture import Picture

Region = tuple[int, int, int, int]


class ScreenFeed(Feed):
    """A region of the desktop: x, y, width, height in pixels from its top left corner; or all of the first screen.

    Raises InputError where there is no screen or the region has no pixels, and MissingExtraError without mss.
    """

    is_live = True

    def __init__(self, region: Region | None = None, rate: Fraction = Fraction(30)) -> None:
        self.name, self.rate, self._region = "the screen", rate, region
        if region is not None and min(region[2:]) < 1:
            raise InputError(f"a region of the screen is x, y, width, height; {region} has no pixels")
        try:
            import mss
        except ImportError as error:
            raise MissingExtraError("mss", "screen", "reading the screen") from error
        self._mss: Any = mss

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """The screen, `rate` times a second."""
        began = time.perf_counter()
        index = 0
        try:
            with self._mss.MSS() as screens:
                area: Any = screens.monitors[1]
                if self._region is not None:
                    area = dict(zip(("left", "top", "width", "height"), self._region, strict=True))
                while True:
                    now = time.perf_counter() - began
                    shot = screens.grab(area)
                    bgra = np.frombuffer(shot.raw, np.uint8).reshape(shot.height, shot.width, 4)
                    yield Picture(np.ascontiguousarray(bgra[..., 2::-1]), index, now)
                    index += 1
                    time.sleep(max(0.0, float(index / self.rate) - (time.perf_counter() - began)))
        except (self._mss.ScreenShotError, OSError, IndexError) as error:
            raise InputError(f"the screen cannot be read: {error}") from error
