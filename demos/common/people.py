"""People that Pillow draws: who they are, how they hold their heads, and where that puts their faces.

Networks learn from these drawings, and the demos show them where there is no camera.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import cos, sin, tau
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

Array = np.ndarray[Any, Any]
Color = tuple[int, int, int]
Shape = tuple[Array, Color]
"""A polygon of points (count, 2), and its colour."""

SKINS: tuple[Color, ...] = (
    (255, 224, 196),
    (241, 194, 156),
    (222, 166, 122),
    (184, 125, 84),
    (139, 88, 58),
    (96, 60, 42),
)
HAIRS: tuple[Color, ...] = (
    (32, 26, 28),
    (68, 44, 34),
    (112, 70, 40),
    (168, 96, 48),
    (222, 178, 98),
    (196, 196, 200),
    (150, 50, 38),
)
SHIRTS: tuple[Color, ...] = (
    (222, 84, 72), (240, 160, 64), (250, 206, 92), (88, 168, 110), (62, 148, 170), (72, 108, 190), (146, 96, 180),
    (236, 232, 222), (52, 60, 84), (226, 120, 150),
)  # fmt: skip
STYLES = ("short", "long", "bun", "curls", "bald", "cap")
EXTRAS = ("", "", "glasses", "beard", "moustache")
FINE = 2  # pixels are drawn finer by this factor, across and down, and then made smaller: smooth edges


@dataclass(frozen=True)
class Person:
    """What does not change: colours, hair, and what a face has beside it."""

    skin: Color
    hair: Color
    shirt: Color
    style: str = "short"
    extra: str = ""


@dataclass(frozen=True)
class Pose:
    """Where a head is and how it is held. Pixels for `x`, `y` (its middle) and `height` (chin to crown), radians."""

    x: float
    y: float
    height: float
    roll: float = 0.0
    turn: float = 0.0  # to the side
    nod: float = 0.0
    smile: float = 1.0
    mouth: float = 0.2  # how far it is open, 0..1
    eyes: float = 1.0  # how far they are open, 0..1
    wave: float | None = None  # the angle of a raised hand, if one is


@dataclass(frozen=True)
class Face:
    """Where a face is: `box` is left, top, right, bottom; `points` are the eyes, nose, mouth and ears, (6, 2)."""

    box: tuple[float, float, float, float]
    points: Array


def anybody(random: np.random.Generator) -> Person:
    """Draw a person by lot."""

    def one(of: Sequence[Any]) -> Any:
        return of[int(random.integers(len(of)))]

    return Person(one(SKINS), one(HAIRS), one(SHIRTS), one(STYLES), one(EXTRAS))


def shaded(color: Color, by: float) -> Color:
    """A darker colour for `by` below 1, a lighter one above."""
    red, green, blue = (min(255, max(0, round(value * by))) for value in color)
    return red, green, blue


def ellipse(x: float, y: float, across: float, down: float, begin: float = 0.0, end: float = 1.0) -> Array:
    """Points of an ellipse around (x, y). Shares of a turn from the right, clockwise as the picture shows it."""
    angle = np.linspace(begin, end, 28) * tau
    return np.stack([x + across * np.cos(angle), y + down * np.sin(angle)], 1)


def stroke(points: Array, width: float) -> Array:
    """The outline of a line through the points."""
    along = np.gradient(points, axis=0)
    normal = np.stack([-along[:, 1], along[:, 0]], 1) / np.maximum(np.linalg.norm(along, axis=1), 1e-6)[:, None]
    return np.concatenate([points + normal * width / 2, (points - normal * width / 2)[::-1]])


def curve(left: float, right: float, y: float, bend: float) -> Array:
    """A line from left to right that hangs down by `bend` in its middle."""
    x = np.linspace(left, right, 12)
    share = (x - left) / (right - left)
    return np.stack([x, y + bend * 4 * share * (1 - share)], 1)


class Figure:
    """A person in a pose: its shapes from the rear to the front, and its face.

    Shapes are made in units of the head's height around its middle; what lies on the face turns with it.
    """

    def __init__(self, person: Person, pose: Pose) -> None:
        self._person, self._pose = person, pose
        self.shapes: list[Shape] = []
        self._behind()
        self._body()
        self._head()
        self._features()
        self._hair()
        if pose.wave is not None:
            self._arm(pose.wave)
        points = np.array([(-0.16, -0.03), (0.16, -0.03), (0.0, 0.10), (0.0, 0.27)])
        ears = np.array([(-0.385 * cos(pose.turn), 0.03), (0.385 * cos(pose.turn), 0.03)])
        self.face = Face(self._face_box(), np.concatenate([self._placed(self._turned(points)), self._placed(ears)]))

    def _face_box(self) -> tuple[float, float, float, float]:
        pose, half = self._pose, 0.44
        x, y = self._placed(np.array([[0.10 * sin(pose.turn), 0.06]]))[0]
        return (x - half * pose.height, y - half * pose.height, x + half * pose.height, y + half * pose.height)

    def _turned(self, points: Array) -> Array:
        """Points on the front of the head, where its turn and nod bring them."""
        pose = self._pose
        deep = 0.36 * np.sqrt(np.clip(1 - (points[:, 0] / 0.42) ** 2, 0, 1))
        x = points[:, 0] * cos(pose.turn) + deep * sin(pose.turn)
        return np.stack([x, points[:, 1] + deep * sin(pose.nod)], 1)

    def _placed(self, points: Array) -> Array:
        """Points around the head's middle in pixels. Heads roll about the neck."""
        pose, neck = self._pose, 0.45
        x, y = points[:, 0], points[:, 1] - neck
        rolled = np.stack([x * cos(pose.roll) - y * sin(pose.roll), x * sin(pose.roll) + y * cos(pose.roll) + neck], 1)
        result: Array = rolled * pose.height + (pose.x, pose.y)
        return result

    def _add(self, points: Array, color: Color, on: str = "head") -> None:
        """Add a shape on the "face", on the "head", or on the "body", which neither turns nor rolls."""
        if on == "body":
            placed = points * self._pose.height + (self._pose.x, self._pose.y)
        else:
            placed = self._placed(self._turned(points) if on == "face" else points)
        self.shapes.append((placed, color))

    def _behind(self) -> None:
        person = self._person
        if person.style == "long":
            self._add(ellipse(0, 0.16, 0.52, 0.68), shaded(person.hair, 0.8))
        if person.style == "bun":
            self._add(ellipse(0, -0.58, 0.19, 0.17), shaded(person.hair, 0.85))
        if person.style == "curls":
            for angle in np.linspace(-0.08, -0.42, 9) * tau:
                self._add(ellipse(0.44 * cos(angle), 0.46 * sin(angle), 0.17, 0.16), shaded(person.hair, 0.85))

    def _body(self) -> None:
        person = self._person
        torso = np.concatenate([ellipse(0, 1.56, 0.80, 0.92, 0.5, 1.0), [[0.86, 6.0], [-0.86, 6.0]]])
        self._add(torso, person.shirt, "body")
        self._add(ellipse(0, 0.72, 0.24, 0.17), shaded(person.shirt, 0.72), "body")
        self._add(
            np.array([(-0.15, 0.3), (0.15, 0.3), (0.17, 0.72), (0.0, 0.84), (-0.17, 0.72)]),
            shaded(person.skin, 0.84),
            "body",
        )

    def _head(self) -> None:
        person, narrow = self._person, cos(self._pose.turn)
        for side in (-1, 1):
            self._add(ellipse(side * 0.385 * narrow, 0.03, 0.07, 0.11), shaded(person.skin, 0.92))
        points = ellipse(0, 0, 0.39, 0.5)
        points[:, 0] *= 1 - 0.2 * np.clip(points[:, 1] * 2, 0, 1) ** 2  # towards the chin
        self._add(points, person.skin)

    def _features(self) -> None:
        person, pose = self._person, self._pose
        dark = shaded(person.skin, 0.55)
        if person.extra == "beard":
            chin = np.concatenate([ellipse(0, 0.1, 0.345, 0.40, 0.03, 0.47), curve(-0.34, 0.34, 0.14, 0.07)])
            self._add(chin, person.hair, "face")
        for side in (-1, 1):
            x, y = side * 0.16, -0.03
            self._add(ellipse(side * 0.22, 0.14, 0.075, 0.055), _mixed(person.skin, (236, 96, 96), 0.28), "face")
            if pose.eyes > 0.3:
                self._add(ellipse(x, y, 0.068, 0.056 * pose.eyes), (252, 252, 250), "face")
                self._add(ellipse(x, y, 0.034, 0.046 * pose.eyes), (46, 34, 30), "face")
                self._add(ellipse(x + 0.012, y - 0.014, 0.011, 0.012), (250, 250, 250), "face")
            else:
                self._add(stroke(curve(x - 0.065, x + 0.065, y, 0.03), 0.022), dark, "face")
            brow = shaded(person.hair, 0.8) if person.style != "bald" else dark
            self._add(stroke(curve(x - 0.08, x + 0.08, y - 0.105, -0.03), 0.03), brow, "face")
        self._add(stroke(curve(-0.05, 0.05, 0.1, 0.035), 0.026), shaded(person.skin, 0.72), "face")
        if person.extra == "moustache":
            self._add(stroke(curve(-0.13, 0.13, 0.215, -0.06), 0.06), person.hair, "face")
        self._mouth()
        if person.extra == "glasses":
            for side in (-1, 1):
                ring = stroke(ellipse(side * 0.165, -0.03, 0.115, 0.1), 0.024)
                self._add(ring, (44, 44, 52), "face")
            self._add(stroke(curve(-0.055, 0.055, -0.04, -0.02), 0.024), (44, 44, 52), "face")

    def _mouth(self) -> None:
        pose, wide = self._pose, 0.12
        hang = 0.075 * pose.smile
        if pose.mouth < 0.08:
            self._add(stroke(curve(-wide, wide, 0.265, hang), 0.03), (158, 56, 58), "face")
            return
        top, bottom = curve(-wide, wide, 0.255, hang * 0.5), curve(-wide, wide, 0.265, hang + 0.16 * pose.mouth)
        self._add(np.concatenate([top, bottom[::-1]]), (124, 34, 42), "face")
        teeth = curve(-wide * 0.8, wide * 0.8, 0.262, hang * 0.5)
        self._add(
            np.concatenate([teeth, teeth[::-1] + np.array((0, 0.032 * min(1.0, 3 * pose.mouth)))]),
            (250, 248, 242),
            "face",
        )

    def _hair(self) -> None:
        person, shift = self._person, 0.16 * sin(self._pose.turn)
        if person.style == "bald":
            return
        if person.style == "cap":
            self._add(ellipse(0, -0.14, 0.43, 0.45, 0.5, 1.0), person.shirt)
            self._add(stroke(curve(-0.44, 0.44, -0.15, -0.05), 0.13), shaded(person.shirt, 0.8))
            return
        crown = ellipse(0, -0.04, 0.43, 0.51, 0.5, 1.0)
        left = [(-0.14 + shift, -0.24), (-0.28 + shift, -0.17), (-0.36, -0.08), (-0.41, 0.02)]
        right = [(0.41, 0.02), (0.34, -0.12), (0.26 + shift, -0.25), (0.06 + shift, -0.27)]
        fringe = np.array([*right, *left])
        self._add(np.concatenate([crown, fringe]), person.hair)
        if person.style == "curls":
            for x in np.linspace(-0.3, 0.3, 5):
                self._add(ellipse(x, -0.3 - 0.1 * cos(4 * x), 0.13, 0.12), person.hair)

    def _arm(self, angle: float) -> None:
        """A raised arm, whose hand waves."""
        person = self._person
        elbow, hand = np.array([1.28, 1.42]), np.array([1.28 + 0.9 * sin(angle), 1.42 - 0.95 * cos(angle)])
        way = np.array([(0.60, 1.12), (0.98, 1.42), elbow, (elbow + hand) / 2, hand])
        self._add(stroke(way[:4], 0.34), shaded(person.shirt, 0.94), "body")
        self._add(ellipse(elbow[0], elbow[1], 0.17, 0.17), shaded(person.shirt, 0.94), "body")
        self._add(stroke(way[2:], 0.25), shaded(person.shirt, 0.94), "body")
        up = (hand - elbow) / np.linalg.norm(hand - elbow)
        palm = hand + up * 0.1
        for spread in (-0.42, -0.14, 0.14, 0.42):
            way_of_finger = np.array(
                [up[0] * cos(spread) - up[1] * sin(spread), up[0] * sin(spread) + up[1] * cos(spread)]
            )
            self._add(
                stroke(np.stack([palm, palm + way_of_finger * 0.2, palm + way_of_finger * 0.33]), 0.075),
                person.skin,
                "body",
            )
        self._add(ellipse(palm[0], palm[1], 0.145, 0.15), person.skin, "body")


def _mixed(color: Color, other: Color, share: float) -> Color:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(color, other, strict=True))
    return red, green, blue


def scaled(pose: Pose, by: float) -> Pose:
    """The pose in a picture that is `by` times as large."""
    return replace(pose, x=pose.x * by, y=pose.y * by, height=pose.height * by)


def painted(figures: Sequence[tuple[Person, Pose]], ground: Image.Image) -> tuple[Image.Image, Image.Image, list[Face]]:
    """Draw people over a picture, the rear ones first: (the picture, where people are as an "L" picture, their faces).

    `ground` is FINE times as wide and high as what is returned; the poses are those of what is returned.
    """
    picture, cover = ground.copy(), Image.new("L", ground.size)
    pen, shadow = ImageDraw.Draw(picture), ImageDraw.Draw(cover)
    for person, pose in figures:
        for points, color in Figure(person, scaled(pose, FINE)).shapes:
            outline = [tuple(point) for point in points.tolist()]
            pen.polygon(outline, fill=color)
            shadow.polygon(outline, fill=255)
    faces = [Figure(person, pose).face for person, pose in figures]
    return picture.reduce(FINE), cover.reduce(FINE), faces
