"""What the demo sees without a camera: friends in a meadow pose for a photograph, and never hold still."""

from __future__ import annotations

from math import sin, tau
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from perframe.resources import resource

from ..common.people import FINE, HAIRS, SHIRTS, SKINS, Array, Face, Person, Pose, ellipse, painted, shaded, stroke

FRIENDS = (  # who they are, and where: x, y and height of the head as shares of the picture's height
    (Person(SKINS[1], HAIRS[2], SHIRTS[4], "short", "beard"), (0.27, 0.38, 0.23)),
    (Person(SKINS[4], HAIRS[0], SHIRTS[2], "curls"), (0.69, 0.32, 0.23)),
    (Person(SKINS[0], HAIRS[6], SHIRTS[3], "bun", "glasses"), (1.10, 0.35, 0.23)),
    (Person(SKINS[2], HAIRS[1], SHIRTS[0], "cap", "moustache"), (1.49, 0.37, 0.23)),
    (Person(SKINS[3], HAIRS[0], SHIRTS[9], "long"), (0.45, 0.66, 0.27)),
    (Person(SKINS[0], HAIRS[5], SHIRTS[5], "short", "glasses"), (0.88, 0.64, 0.27)),
    (Person(SKINS[5], HAIRS[0], SHIRTS[7], "bald", "beard"), (1.31, 0.67, 0.27)),
)
BALLOONS = ((0.08, 0), (0.48, 1), (0.90, 2), (1.30, 3), (1.70, 4))
"""The x, as a share of the height, and the skin whose colour it has: colour alone makes no face."""


class Party:
    """Draws the friends as they are at a time, in seconds: H x W x 3 of uint8. `faces` are the last picture's."""

    def __init__(self, size: tuple[int, int] = (960, 540)) -> None:
        self._size = size
        with Image.open(resource("assets", "painter", "scene.jpg")) as scene:
            ground = scene.convert("RGB").resize((size[0] * FINE, size[1] * FINE), Image.Resampling.BICUBIC)
        self._ground = ground.filter(ImageFilter.GaussianBlur(size[1] * FINE / 180))
        self.faces: list[Face] = []

    def __call__(self, time: float) -> Array:
        """The picture of this moment."""
        ground = self._ground.copy()
        for index, (x, skin) in enumerate(BALLOONS):
            self._balloon(
                ImageDraw.Draw(ground), x + 0.02 * sin(time + index), 0.13 + 0.03 * sin(0.7 * time + 2 * index), skin
            )
        people = [(person, self._pose(index, place, time)) for index, (person, place) in enumerate(FRIENDS)]
        picture, _, self.faces = painted(people, ground)
        pixels: Array = np.asarray(picture)
        return pixels

    def _pose(self, index: int, place: tuple[float, float, float], time: float) -> Pose:
        high = self._size[1]
        x, y, height = (share * high for share in place)

        def swing(period: float, phase: float) -> float:
            return sin(tau * (time / period + phase * (index + 1)))

        return Pose(
            x + 0.03 * high * swing(5.3, 0.37),
            y + 0.015 * high * swing(2.9, 0.61),
            height,
            roll=0.13 * swing(4.1, 0.23),
            turn=0.38 * swing(6.7, 0.47),
            nod=0.09 * swing(3.7, 0.83),
            smile=0.8,
            mouth=0.25 + 0.25 * swing(1.9, 0.19),
            eyes=0.0 if (time + 1.3 * index) % 4.0 > 3.85 else 1.0,
        )

    def _balloon(self, pen: Any, x: float, y: float, skin: int) -> None:
        scale = self._size[1] * FINE
        way = np.array([(x, y), (x + 0.01, y + 0.2), (x - 0.01, y + 0.4), (x, y + 0.6)])
        for points, color in (
            (stroke(way, 0.003), (250, 250, 250)),
            (ellipse(x, y, 0.062, 0.078), SKINS[skin]),
            (ellipse(x + 0.02, y - 0.028, 0.014, 0.02), shaded(SKINS[skin], 1.2)),
        ):
            pen.polygon([tuple(point) for point in (points * scale).tolist()], fill=color)
