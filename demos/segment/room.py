"""What the demo sees without a camera: somebody in a room talks to you."""

from __future__ import annotations

from math import sin, tau
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from ..common.people import FINE, HAIRS, SHIRTS, SKINS, Array, Color, Person, Pose, ellipse, painted, stroke

SPEAKER = Person(SKINS[2], HAIRS[1], SHIRTS[1], "long")
BOOKS: tuple[Color, ...] = (
    (178, 74, 66),
    (214, 162, 84),
    (92, 128, 112),
    (74, 96, 138),
    (146, 106, 134),
    (224, 214, 196),
)


class Room:
    """Draws the room and who is in it at a time, in seconds: H x W x 3 of uint8. `cover` is where that person is, an
    "L" picture."""

    def __init__(self, size: tuple[int, int] = (960, 540)) -> None:
        self._size = size
        self._ground = furnished((size[0] * FINE, size[1] * FINE))
        self.cover = Image.new("L", size)

    def __call__(self, time: float) -> Array:
        """The picture of this moment."""
        wide, high = self._size
        pose = Pose(
            wide * (0.48 + 0.04 * sin(tau * time / 7.3)),
            high * (0.42 + 0.012 * sin(tau * time / 2.9)),
            high * 0.40,
            roll=0.10 * sin(tau * time / 4.1),
            turn=0.32 * sin(tau * time / 6.1 + 0.6),
            nod=0.08 * sin(tau * time / 3.3),
            smile=0.9,
            mouth=0.3 + 0.3 * sin(tau * time / 0.9),
            eyes=0.0 if time % 3.7 > 3.55 else 1.0,
        )
        picture, self.cover, _ = painted([(SPEAKER, pose)], self._ground)
        pixels: Array = np.asarray(picture)
        return pixels


def furnished(size: tuple[int, int]) -> Image.Image:
    """The empty room: a window, shelves with books, a lamp, a plant."""
    wide, high = size
    wall = np.array([[(178, 198, 204), (156, 180, 190)], [(134, 158, 172), (116, 138, 156)]], np.uint8)
    picture = Image.fromarray(wall).resize(size, Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(picture)
    random = np.random.default_rng(12)

    def draw(points: Any, color: Color) -> None:
        pen.polygon([tuple(point) for point in (np.asarray(points, float) * high).tolist()], fill=color)

    def block(left: float, top: float, right: float, bottom: float, color: Color) -> None:
        draw([(left, top), (right, top), (right, bottom), (left, bottom)], color)

    aspect = wide / high
    block(0, 0.86, aspect, 1, (120, 84, 66))
    block(0.08, 0.10, 0.56, 0.66, (240, 234, 224))  # the window
    for top, color in ((0.13, (150, 198, 230)), (0.24, (176, 212, 234)), (0.35, (206, 226, 232))):
        block(0.11, top, 0.53, 0.63, color)
    draw(
        [(0.11, 0.55), (0.22, 0.44), (0.34, 0.53), (0.44, 0.46), (0.53, 0.54), (0.53, 0.63), (0.11, 0.63)],
        (120, 160, 132),
    )
    block(0.31, 0.10, 0.33, 0.66, (240, 234, 224))
    block(0.06, 0.66, 0.58, 0.69, (226, 218, 206))
    for row in range(2):  # shelves
        bottom = 0.20 + 0.20 * row
        x = 1.16
        while x < 1.66:
            thick, tall = random.uniform(0.022, 0.05), random.uniform(0.11, 0.165)
            if random.random() < 0.82:
                block(x, bottom - tall, x + thick, bottom, BOOKS[random.integers(len(BOOKS))])
            x += thick + 0.005
        block(1.13, bottom, 1.72, bottom + 0.022, (112, 78, 60))
    draw(stroke(np.array([(0.72, 0.0), (0.72, 0.05), (0.72, 0.1)]), 0.006), (60, 50, 48))
    draw(ellipse(0.72, 0.17, 0.085, 0.08, 0.5, 1.0), (232, 178, 92))
    block(0.635, 0.165, 0.805, 0.18, (250, 222, 160))
    for lean in np.linspace(-0.9, 0.9, 9):  # the plant
        tip = np.array([0.44 + 0.13 * lean, 0.43 - 0.07 * (1 - lean * lean)])
        way = np.array([(0.44, 0.6), (0.44 + 0.04 * lean, 0.5), tip])
        draw(stroke(way, 0.018), (66, 118, 84) if round(lean * 10) % 2 else (86, 142, 98))
    draw([(0.385, 0.56), (0.495, 0.56), (0.48, 0.66), (0.40, 0.66)], (198, 112, 82))
    return picture
