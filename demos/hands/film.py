"""What the demo sees without a camera: two hands that wave, pass something to each other, leave and come back."""

from __future__ import annotations

from math import sin, tau
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageFilter

from perframe.resources import resource

from ..common.people import SHIRTS, SKINS, Array
from .drawn import FINE, Build, HandPen, Hold, pinching

PALM = 0.16  # the length of a palm, as a share of the picture's height
LOOP = 12.0  # seconds
BUILDS = (Build(SKINS[5], SHIRTS[1]), Build(SKINS[1], SHIRTS[4], np.array([1.03, 0.97, 1.0, 1.02, 1.05]), 0.95))


class Key(NamedTuple):
    """Where a hand is at a time of the loop, in shares of the picture's height, and how far it pinches and waves."""

    time: float
    x: float
    y: float
    pinch: float = 0.0
    wave: float = 0.0
    roll: float = 0.0


WAYS = (
    (
        Key(0.0, 0.35, 0.62, wave=1, roll=-0.1),
        Key(1.6, 0.35, 0.6, wave=1, roll=-0.1),
        Key(2.4, 0.80, 0.66),
        Key(2.8, 0.80, 0.66, pinch=1),
        Key(4.6, 1.2, 0.5, pinch=1, roll=0.15),
        Key(5.2, 1.2, 0.5, roll=0.15),
        Key(6.6, 0.45, 0.44, roll=-0.1),
        Key(8.0, -0.35, 0.75, roll=-0.35),
        Key(9.2, -0.35, 0.75, roll=-0.35),
        Key(10.8, 0.35, 0.62, wave=1, roll=-0.1),
        Key(LOOP, 0.35, 0.62, wave=1, roll=-0.1),
    ),
    (
        Key(0.0, 1.45, 0.85, wave=1, roll=0.1),
        Key(2.2, 1.45, 0.85, wave=1, roll=0.1),
        Key(4.4, 0.4, 0.9, roll=-0.15),
        Key(5.4, 0.4, 0.9, wave=0.5),
        Key(7.0, 1.47, 0.46),
        Key(7.4, 1.47, 0.46, pinch=1),
        Key(9.2, 0.98, 0.74, pinch=1),
        Key(9.8, 0.98, 0.74),
        Key(LOOP, 1.45, 0.85, wave=1, roll=0.1),
    ),
)


class HandFilm:
    """Draws the hands as they are at a time, in seconds: H x W x 3 of uint8. `joints` are the last picture's, (21, 2) a
    hand, in pixels.
    """

    def __init__(self, size: tuple[int, int] = (640, 360)) -> None:
        self._size = size
        with Image.open(resource("assets", "painter", "scene.jpg")) as scene:
            ground = scene.convert("RGB").resize((size[0] * FINE, size[1] * FINE), Image.Resampling.BICUBIC)
        self._ground = ground.filter(ImageFilter.GaussianBlur(size[1] * FINE / 120))
        self.joints: list[Array] = []

    def __call__(self, time: float) -> Array:
        """The picture of this moment."""
        ground = self._ground.copy()
        pen = HandPen(ground)
        self.joints = [pen.draw(build, self.hold(index, time))[:, :2] for index, build in enumerate(BUILDS)]
        pixels: Array = np.asarray(ground.resize(self._size, Image.Resampling.BOX))
        return pixels

    def hold(self, index: int, time: float) -> Hold:
        """How a hand is held at this moment."""
        now = time % LOOP
        later = next(place for place, key in enumerate(WAYS[index]) if key.time > now)
        begin, end = (np.array(key) for key in WAYS[index][later - 1 : later + 1])
        share = (now - begin[0]) / (end[0] - begin[0])
        _, x, y, pinch, wave, roll = (begin + (end - begin) * share * share * (3 - 2 * share)).tolist()
        high = self._size[1]
        swing = sin(tau * time * 0.9 + index)
        held, fold = pinching(pinch)
        idle = 0.05 * (1 - pinch)
        bends: Any = tuple(bend + idle * (1 + sin(1.7 * time + finger)) for finger, bend in enumerate(held))
        return Hold(
            x * high,
            y * high,
            PALM * high,
            roll + 0.3 * wave * swing,
            is_left=index == 1,
            spread=0.45 + 0.2 * sin(1.3 * time + 2 * index),
            bends=bends,
            fold=fold,
        )
