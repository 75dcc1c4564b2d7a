"""Feeds of pictures: a picture file, a folder, a function that draws. Threads read them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.media.picture import (
    Picture,
    Pixels,
    Size,
    checked,
    is_size,
    open_picture,
    pictures_in,
    pixels_of,
    read_picture,
)

RATE = Fraction(25)  # pictures a second, where nothing says it
_SHORTEST, _USUAL = 10, 100  # milliseconds: browsers show a picture of an animation for 100 where it says 10 or less


class Feed(ABC):
    """Pictures in their order. What it opens lives as long as an iteration."""

    name: str
    """The name in error messages."""
    is_live = False
    """Whether it continues by itself, as a camera does, so that only its newest picture counts."""
    is_still = False
    """Whether it is one picture that stays."""
    rate = RATE
    """Pictures a second."""

    @property
    def count(self) -> int | None:
        """The number of pictures; None for one that has no end. It may have to read the file."""
        return None

    @property
    def is_steady(self) -> bool:
        """Whether the pictures come at equal times, `rate` a second. It may have to read the file."""
        return True

    def time_of(self, index: int) -> Fraction:
        """A picture's time in seconds. It may have to read the file."""
        return index / self.rate

    @abstractmethod
    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """The pictures from the one of index `first`. Raises InputError where one cannot be read."""


class StillFeed(Feed):
    """A picture file. Raises InputError if it cannot be read, PIL.UnidentifiedImageError if it is not a picture."""

    is_still = True
    count = 1

    def __init__(self, path: Path, enough: Size | None = None) -> None:
        self.name = f"the picture {str(path)!r}"
        self._pixels = read_picture(path, enough)

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """The picture."""
        if not first:
            yield Picture(self._pixels, 0, 0.0)


class AnimationFeed(Feed):
    """A picture file that moves: GIF, APNG or WebP. Raises InputError if it cannot be read."""

    def __init__(self, path: Path, enough: Size | None = None) -> None:
        self.name, self._path, self._enough = f"the animation {str(path)!r}", path, enough
        ends = [Fraction(0)]
        for image in self._images():
            shown = image.info.get("duration", 0)
            ends.append(ends[-1] + Fraction(shown if shown > _SHORTEST else _USUAL) / 1000)
        self._times = ends[:-1]
        self.rate = len(self._times) / ends[-1]

    @property
    def count(self) -> int:
        """The number of pictures."""
        return len(self._times)

    @property
    def is_steady(self) -> bool:
        """Whether all are shown for the same time."""
        return all(time == index / self.rate for index, time in enumerate(self._times))

    def time_of(self, index: int) -> Fraction:
        """A picture's time, by the file."""
        return self._times[index]

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """Decode them. Each builds on those before."""
        for index, image in enumerate(self._images()):
            if index >= first:
                yield Picture(pixels_of(image, self._enough), index, float(self._times[index]))

    def _images(self) -> Iterator[Any]:
        with open_picture(self._path) as image:
            for index in range(bool(image.info.get("default_image")), image.n_frames):  # one for who cannot animate
                image.seek(index)
                image.load()  # the time of a WebP picture is known then
                yield image


class FolderFeed(Feed):
    """The picture files of a folder, `rate` a second. A file that is not a picture, or is missing, is an InputError."""

    def __init__(self, folder: Path, enough: Size | None = None, rate: Fraction = RATE) -> None:
        self.name, self.rate, self._enough = f"the folder {str(folder)!r}", rate, enough
        self.paths = pictures_in(folder)

    @property
    def count(self) -> int:
        """The number of picture files when the folder was opened."""
        return len(self.paths)

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """Read the files."""
        from PIL import UnidentifiedImageError

        for index in range(first, len(self.paths)):
            path = self.paths[index]
            try:
                pixels = read_picture(path, self._enough)
            except UnidentifiedImageError as error:
                raise InputError(f"{str(path)!r} is not a picture, despite its name") from error
            yield Picture(pixels, index, float(index / self.rate))


class DrawnFeed(Feed):
    """Pictures that a function draws: `draw(seconds)` returns H x W x 3 of uint8."""

    def __init__(self, draw: Callable[[float], Pixels], rate: Fraction = RATE, count: int | None = None) -> None:
        self.name = getattr(draw, "__qualname__", type(draw).__name__)
        self.rate, self._draw, self._count = rate, draw, count

    @property
    def count(self) -> int | None:
        """The number of pictures that was asked for."""
        return self._count

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """Draw them."""
        for index in count(first) if self._count is None else range(first, self._count):
            time = float(index / self.rate)
            yield Picture(checked(self._draw(time), f"{self.name}, picture {index}"), index, time)


class Scene:
    """Our own scene, with which to try a network where there is no video: discs move over a sky.

    Raises InputError for a size that is not a width and a height, and for a time that is not a finite number.
    """

    def __init__(self, size: Size = (640, 360)) -> None:
        if not is_size(size):
            raise InputError(f"a scene's size is width and height in whole pixels, as Scene((320, 180)), not {size!r}")
        self.size = size
        self._y, self._x = np.mgrid[: size[1], : size[0]].astype(np.float32) / min(size)

    def __call__(self, time: float) -> Pixels:
        """The scene at this time, in seconds."""
        if not isinstance(time, Real) or not math.isfinite(time):
            raise InputError(f"a scene's time is a finite number of seconds, not {time!r}")
        middle = np.array(self.size) / min(self.size) / 2
        colors = np.stack([0.25 + 0.3 * self._y, 0.45 + 0.3 * self._y, 0.85 - 0.3 * self._y], -1)
        for index, color in enumerate(((0.95, 0.75, 0.2), (0.85, 0.25, 0.3), (0.2, 0.6, 0.35), (0.95, 0.95, 0.95))):
            angle = time * (0.5 + 0.2 * index) + 1.6 * index
            x, y = middle * (1 + (0.3 + 0.12 * index) * np.array([np.cos(angle), np.sin(1.3 * angle)]))
            distance = np.hypot(self._x - x, self._y - y) - (0.2 - 0.03 * index)
            cover = np.clip(0.5 - distance * min(self.size), 0, 1)[..., None]
            colors = colors * (1 - cover) + np.array(color) * cover
        drawn: Pixels = np.rint(colors.clip(0, 1) * 255).astype(np.uint8)
        return drawn
