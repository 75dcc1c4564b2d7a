"""Pictures with faces on which the network is trained and measured: people whom the demos draw, before any clutter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from assets.common.poses import any_pose
from demos.common.clutter import clutter, developed
from demos.common.people import FINE, HAIRS, SKINS, Color, Face, Person, Pose, anybody, painted
from PIL import Image, ImageFilter

SIDE = 128
PARTIES = 0.3  # the share of pictures that show a group before our own scene
TONES = len(SKINS)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Seen:
    """A face that can be seen, in shares of the picture's sides, and its tone: 0, the lightest, to TONES - 1."""

    face: Face
    tone: float


def skin(tone: float) -> Color:
    """The colour of a tone; between two of `SKINS` a mixture of both."""
    red, green, blue = (round(float(np.interp(tone, range(TONES), part))) for part in zip(*SKINS, strict=True))
    return red, green, blue


def sample(random: np.random.Generator, scenery: Image.Image, tone: float | None = None) -> tuple[Array, list[Seen]]:
    """A picture (SIDE, SIDE, 3) in -1..1, and its faces. All people have the `tone`; without one each has one by lot.

    With the same random numbers and another tone, the picture is the same but for the people's skin.
    """
    people: list[tuple[Person, Pose, float]] = []
    is_party = random.random() < PARTIES
    for _ in range(int(random.choice(7, p=(0.08, 0.24, 0.2, 0.16, 0.12, 0.1, 0.1))) + 3 * is_party):
        tall = np.exp(random.uniform(np.log(0.1), np.log(0.75 if random.random() < 0.25 else 0.3)))
        height = SIDE * (random.uniform(0.1, 0.18) if is_party else float(tall))
        x, y = random.uniform(0.05, 0.95) * SIDE, random.uniform(0.3, 0.7) * SIDE if is_party else any_y(random)
        pose = any_pose(random, x, y, height, waving=0.15, angle=0.5)
        apart = 0.5 if is_party else 0.62
        if all(np.hypot(pose.x - p.x, pose.y - p.y) > apart * (pose.height + p.height) for _, p, _ in people):
            own = random.uniform(-0.5, TONES - 0.5)  # the ends are as likely as what lies between
            person, chosen = anybody(random), float(np.clip(own if tone is None else tone, 0, TONES - 1))
            people.append((replace(person, skin=skin(chosen), **unusual(random)), pose, chosen))
    people.sort(key=lambda one: one[1].height)
    ground = meadow(random, scenery) if is_party else clutter(random, (SIDE * FINE, SIDE * FINE), scenery)
    picture, _, faces = painted([(person, pose) for person, pose, _ in people], ground)
    picture = picture.filter(ImageFilter.GaussianBlur(random.uniform(0, 0.8)))  # as resampling blurs
    pixels = developed(random, np.asarray(picture, np.float32) / 255)
    top = 0
    if is_party or random.random() < 0.5:  # bars, as of a wide picture that fills the square
        top = int(random.uniform(0.05, 0.25) * SIDE)
        pixels[:top] = pixels[SIDE - top :] = 0
    seen = [
        Seen(Face(shares(face.box), face.points / SIDE), people[index][2])
        for index, face in enumerate(faces)
        if (not top or top < (face.box[1] + face.box[3]) / 2 < SIDE - top) and is_seen(face, faces[index + 1 :])
    ]
    return pixels * 2 - 1, seen


def any_y(random: np.random.Generator) -> float:
    """Return a head's height in the picture, in pixels."""
    return random.uniform(0.1, 0.85) * SIDE


def unusual(random: np.random.Generator) -> dict[str, Any]:
    """Return what is hard to see in some people: dark hair beside dark skin, glasses, a beard."""
    chosen: dict[str, Any] = {}
    if random.random() < 0.25:
        chosen["hair"] = HAIRS[int(random.integers(2))]
    if random.random() < 0.25:
        chosen["extra"] = ("glasses", "beard")[int(random.integers(2))]
    return chosen


def meadow(random: np.random.Generator, scenery: Image.Image) -> Image.Image:
    """Return a blurred part of our own scene as the ground of a group of people."""
    width, height = scenery.size
    share = random.uniform(0.5, 1.0)
    left, top = (random.uniform(0, 1 - share) * side for side in (width, height))
    part = scenery.crop((int(left), int(top), int(left + share * width), int(top + share * height)))
    ground = part.resize((SIDE * FINE, SIDE * FINE), Image.Resampling.BICUBIC)
    return ground.filter(ImageFilter.GaussianBlur(random.uniform(0, 2)))


def shares(box: Sequence[float]) -> tuple[float, float, float, float]:
    """A box in pixels as shares of the picture's sides."""
    left, top, right, bottom = (float(side) / SIDE for side in box)
    return left, top, right, bottom


def is_seen(face: Face, before: list[Face]) -> bool:
    """Whether a face is visible: no body in front of it covers its middle, roughly."""
    left, top, right, bottom = face.box
    x, y = (left + right) / 2, (top + bottom) / 2
    for other in before:
        size = other.box[2] - other.box[0]
        middle = (other.box[0] + other.box[2]) / 2
        if abs(middle - x) < size and y > other.box[1] + 0.6 * size:
            return False
    return True
