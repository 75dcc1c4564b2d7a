"""Hands that Pillow draws: a skeleton of 21 joints, and a palm and five fingers around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import cos, sin
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from ..common.people import SHIRTS, SKINS, Array, Color, shaded

JOINTS = 21
"""MediaPipe's order: the wrist, and four joints of each finger from the thumb to the little finger, base to tip."""
FINGERS = tuple(tuple(range(first, first + 4)) for first in (1, 5, 9, 13, 17))
BONES = tuple(
    [(0, finger[0]) for finger in FINGERS]
    + [pair for finger in FINGERS for pair in pairwise(finger)]
    + [(5, 9), (9, 13), (13, 17)]
)
LENGTH = 2.05  # of a stretched hand, from the wrist to the tip of the middle finger
FINE = 2  # pixels are drawn finer by this factor, across and down, and then made smaller: smooth edges

# Lengths are those of the palm, from the wrist to the base of the middle finger. x is the thumb's side, y is up.
_BASES = np.array([(0.28, 0.24), (0.28, 0.97), (0.0, 1.0), (-0.25, 0.95), (-0.46, 0.82)])
_LENGTHS = np.array(
    [(0.40, 0.33, 0.28), (0.47, 0.28, 0.24), (0.50, 0.31, 0.24), (0.47, 0.29, 0.23), (0.37, 0.22, 0.20)]
)
_DIRECTIONS = np.array([0.75, 0.10, 0.0, -0.10, -0.22])  # radians from upward to the thumb's side
_SPREADS = np.array([0.25, 0.16, 0.02, -0.13, -0.26])
_BENDS = np.array([1.3, 1.6, 1.0])  # radians of the three joints of a finger that is bent as far as it goes
_RADII = np.array([(0.17, 0.135, 0.12, 0.10)] + [(0.125, 0.115, 0.105, 0.09)] * 3 + [(0.11, 0.10, 0.09, 0.08)])


@dataclass(frozen=True)
class Build:
    """What does not change of a hand: its colors, and how long and thick its fingers are."""

    skin: Color = SKINS[2]
    sleeve: Color = SHIRTS[5]
    lengths: Array = field(default_factory=lambda: np.ones(5))
    thickness: float = 1.0


@dataclass(frozen=True)
class Hold:
    """Where a hand is, and how it is held. `x`, `y` (the wrist) and `palm` (its length) are pixels; `roll` is in
    radians, to the right.
    """

    x: float
    y: float
    palm: float
    roll: float = 0.0
    is_left: bool = False  # whether the thumb is on the picture's left
    spread: float = 0.5  # of the fingers, 0..1
    bends: tuple[float, float, float, float, float] = (0.1, 0.1, 0.1, 0.1, 0.1)  # of the fingers, 0..1
    fold: float = 0.0  # how far the thumb lies before the palm, 0..1


def joints_of(build: Build, hold: Hold) -> Array:
    """The joints (21, 3) in pixels: x, y downward, and z toward the viewer."""
    made = np.zeros((JOINTS, 3))
    for index, (finger, base) in enumerate(zip(FINGERS, _BASES, strict=True)):
        made[finger[0], :2] = base
        aside = _DIRECTIONS[index] + hold.spread * _SPREADS[index]
        if index == 0:  # the thumb bends to the side, and folds before the palm
            turns = aside - hold.bends[0] * np.array([0.15, 0.6, 1.3]) - hold.fold * np.array([0.9, 1.2, 1.4])
            lifts = np.array([0.35, 0.3, 0.25]) + 0.3 * hold.fold
        else:
            turns, lifts = np.full(3, aside), np.cumsum(hold.bends[index] * _BENDS)
        for bone in range(3):
            turn, lift = turns[bone], lifts[bone]
            way = np.array([sin(turn) * cos(lift), cos(turn) * cos(lift), sin(lift)])
            made[finger[bone + 1]] = made[finger[bone]] + way * _LENGTHS[index, bone] * build.lengths[index]
    return _placed(made, hold)


def _placed(points: Array, hold: Hold) -> Array:
    """Points (n, 3) of a hand in pixels of the picture."""
    x, y = points[:, 0] * (-1 if hold.is_left else 1), points[:, 1]
    right, up = np.array([cos(hold.roll), sin(hold.roll)]), np.array([sin(hold.roll), -cos(hold.roll)])
    flat = np.array([hold.x, hold.y]) + hold.palm * (x[:, None] * right + y[:, None] * up)
    return np.concatenate([flat, points[:, 2:] * hold.palm], 1)


class HandPen:
    """Draws hands on a picture that is finer than theirs by FINE."""

    def __init__(self, picture: Image.Image) -> None:
        self._pen = ImageDraw.Draw(picture)

    def draw(self, build: Build, hold: Hold) -> Array:
        """Draw a hand, its rear parts first, and return its joints (21, 3)."""
        joints = joints_of(build, hold)
        scale, skin = FINE * hold.palm, build.skin
        edge, fold, light = shaded(skin, 0.42), shaded(skin, 0.62), shaded(skin, 1.16)
        radii = _RADII * build.thickness * scale
        at = joints[:, :2] * FINE
        self._arm(build, hold, edge)
        line = max(1.0, 0.035 * scale)
        palm = _placed(np.array([(0.17, -0.02, 0), (-0.2, -0.02, 0), (-0.02, 0.45, 0)]), hold)[:, :2] * FINE
        pieces = [
            (at[0], at[5]),
            (at[0], at[9]),
            (palm[1], at[13]),
            (palm[1], at[17]),
            (palm[0], at[1]),
            (at[1], at[5]),
        ]
        thick = 0.16 * scale
        outline = np.concatenate([palm[:2], at[[17, 13, 9, 5, 1]]])
        for color, more in ((edge, line), (skin, 0.0)):
            for begin, end in pieces:
                self._bone(begin, end, thick + more, thick + more, color)
            self._pen.polygon([tuple(point) for point in outline.tolist()], fill=color)
        self._bone(palm[0], at[1], 0.1 * scale, 0.13 * scale, light)  # the ball of the thumb
        for begin, end in ((palm[2], at[13]), (palm[0] * 0.3 + palm[1] * 0.7, palm[0] * 0.7 + palm[1] * 0.3)):
            self._bone(begin, begin + (end - begin) * 0.6, 0.018 * scale, 0.018 * scale, fold)
        for index in sorted(range(5), key=lambda one: float(joints[list(FINGERS[one]), 2].max())):
            self._finger(at[list(FINGERS[index])], radii[index], line, (edge, skin, fold, light))
        return joints

    def _finger(self, at: Array, radii: Array, line: float, colors: tuple[Color, ...]) -> None:
        """Draw a finger through its joints (4, 2)."""
        edge, skin, fold, light = colors
        bones = list(zip(at, at[1:], radii, radii[1:], strict=False))
        for begin, end, first, last in bones:
            self._bone(begin, end, first + line, last + line, edge)
        for begin, end, first, last in bones:
            self._bone(begin, end, first, last, skin)
        for begin, end, first, last in bones:
            middle = (begin + end) / 2
            self._bone(begin * 0.3 + middle * 0.7, end * 0.35 + middle * 0.65, 0.5 * first, 0.5 * last, light)
        for joint in range(3):  # a crease across each joint
            along = at[min(joint + 1, 3)] - at[max(joint - 1, 0)]
            size = float(np.hypot(*along))
            across = np.array([-along[1], along[0]]) / size if size > 1e-3 else np.array([1.0, 0.0])
            reach = across * radii[joint] * 0.7
            self._bone(at[joint] - reach, at[joint] + reach, 0.2 * radii[joint], 0.2 * radii[joint], fold)
        self._bone(at[3], at[3], 0.55 * radii[3], 0.55 * radii[3], light)

    def _arm(self, build: Build, hold: Hold, edge: Color) -> None:
        """Draw the wrist and a sleeve that leads out of the picture."""
        ends = _placed(np.array([(0.0, 0.1, 0), (0.0, -0.45, 0), (0.0, -0.3, 0), (-0.1, -6.0, 0)]), hold)[:, :2] * FINE
        scale = FINE * hold.palm
        for color, more in ((edge, 0.035), (build.skin, 0.0)):
            self._bone(ends[0], ends[1], (0.23 + more) * scale, (0.24 + more) * scale, color)
        for color, more in ((shaded(build.sleeve, 0.45), 0.035), (build.sleeve, 0.0)):
            self._bone(ends[2] * 0.4 + ends[1] * 0.6, ends[3], (0.3 + more) * scale, (0.5 + more) * scale, color)

    def _bone(self, begin: Array, end: Array, first: float, last: float, color: Color) -> None:
        """Draw a line with round ends whose half width goes from `first` to `last`."""
        along = end - begin
        size = float(np.hypot(*along))
        if size > 1e-3:
            across = np.array([-along[1], along[0]]) / size
            corners = (begin + across * first, end + across * last, end - across * last, begin - across * first)
            self._pen.polygon([tuple(corner) for corner in np.array(corners).tolist()], fill=color)
        for (x, y), radius in ((begin.tolist(), first), (end.tolist(), last)):
            self._pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)


def anyones(random: np.random.Generator) -> Build:
    """A build by lot: skin of any tone between the lightest and the darkest."""
    tone = float(np.clip(random.uniform(-0.5, len(SKINS) - 0.5), 0, len(SKINS) - 1))
    red, green, blue = (round(float(np.interp(tone, range(len(SKINS)), part))) for part in zip(*SKINS, strict=True))
    sleeve: Any = tuple(int(part) for part in random.integers(0, 256, 3))
    return Build((red, green, blue), sleeve, random.normal(1, 0.05, 5).clip(0.88, 1.12), random.uniform(0.88, 1.12))


def any_hold(random: np.random.Generator, x: float, y: float, palm: float, roll: float) -> Hold:
    """A gesture by lot: fingers alike, each by itself, or index finger and thumb in a pinch."""
    kind = random.random()
    bends = np.clip(random.normal(0.1, 0.12, 5), 0, 0.9)
    fold = max(0.0, random.normal(0, 0.15))
    if kind < 0.3:
        bends = np.clip(random.uniform(0, 0.8) + random.normal(0, 0.08, 5), 0, 0.85)
        fold = random.uniform(0, 0.8)
    elif kind < 0.5:
        bends = random.uniform(0, 0.85, 5)
        fold = random.uniform(0, 0.8)
    elif kind < 0.7:
        pinched = pinching(random.uniform(0, 1))
        bends = np.clip(np.array(pinched[0]) + random.normal(0, 0.05, 5), 0, 0.9)
        fold = pinched[1] + random.normal(0, 0.05)
    chosen = tuple(float(bend) for bend in bends)
    assert len(chosen) == 5
    return Hold(x, y, palm, roll, bool(random.random() < 0.5), random.uniform(0, 1), chosen, float(fold))


def pinching(share: float) -> tuple[tuple[float, float, float, float, float], float]:
    """The bends and the fold of a hand whose index finger and thumb touch at 1, and are open at 0."""
    return (0.1 + 0.55 * share, 0.08 + 0.52 * share, 0.1, 0.08, 0.1), 0.4 * share
