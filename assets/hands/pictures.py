"""Pictures on which the two networks are trained: hands that the demo draws, before any clutter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from demos.common.clutter import clutter, developed
from demos.hands.drawn import FINE, HandPen, any_hold, anyones
from PIL import Image, ImageFilter

Array = np.ndarray[Any, Any]
Random = np.random.Generator

SIDE, CROP = 128, 64  # pixels of the palm detector's and of the landmark network's input
PALM = (0, 5, 9, 13, 17, 1, 2)
"""The joints that the detector points at, in the order of MediaPipe's BlazePalm."""
REGION = 2.6  # the side of a crop in palms; its middle is the base of the middle finger
EMPTY = 0.14  # the share of crops without a hand in their middle


@dataclass(frozen=True)
class Palm:
    """A palm in pixels: the box (left, top, right, bottom), a square of its length around its middle; and points."""

    box: Array
    points: Array


@dataclass(frozen=True)
class Crop:
    """A crop (CROP, CROP, 3) in 0..1, the joints (21, 2) in pixels, which of them are visible, and whether a hand is
    there: 1, 0, or NaN where too little of it is visible to tell.
    """

    pixels: Array
    joints: Array
    visible: Array
    presence: float


def picture(random: Random, scenery: Image.Image) -> tuple[Array, list[Palm]]:
    """A picture (SIDE, SIDE, 3) in 0..1, and its palms."""
    ground = clutter(random, (SIDE * FINE, SIDE * FINE), scenery)
    pen, made = HandPen(ground), list[Array]()
    top = int(random.uniform(0.1, 0.24) * SIDE) if random.random() < 0.7 else 0  # bars, as of a wide picture
    for _ in range(int(random.choice(5, p=(0.12, 0.3, 0.38, 0.12, 0.08)))):
        palm = SIDE * float(np.exp(random.uniform(np.log(0.055), np.log(0.3 if random.random() < 0.25 else 0.17))))
        roll = random.uniform(-np.pi, np.pi) if random.random() < 0.2 else random.normal(0, 0.45)
        middle = np.array([random.uniform(-0.02, 1.02) * SIDE, random.uniform(top - 5, SIDE + 5 - top)])
        wrist = middle - 0.5 * palm * np.array([np.sin(roll), -np.cos(roll)])
        if all(np.hypot(*(middle - joints[:2].mean(0))) > 1.1 * palm + 0.9 * joints[2, 0] for joints in made):
            joints = pen.draw(anyones(random), any_hold(random, *wrist.tolist(), palm, roll))[:, :2]
            made.append(np.concatenate([joints[[0, 9]], [[palm, 0]], joints]))
    pixels = finished(random, ground, SIDE)
    if top:
        pixels[:top] = pixels[SIDE - top :] = 0
    palms = [palm_of(one[3:], float(one[2, 0])) for one in made]
    return pixels, [palm for palm in palms if share_within(palm, top) > 0.55]


def palm_of(joints: Array, length: float) -> Palm:
    """The palm of a hand with these joints (21, 2)."""
    middle = joints[[0, 9]].mean(0)
    return Palm(np.concatenate([middle - length / 2, middle + length / 2]), joints[list(PALM)])


def share_within(palm: Palm, top: int) -> float:
    """The share of a palm's box that lies within the picture and its bars."""
    low, high = np.maximum(palm.box[:2], (0, top)), np.minimum(palm.box[2:], (SIDE, SIDE - top))
    return float(np.prod(np.maximum(high - low, 0)) / np.prod(palm.box[2:] - palm.box[:2]))


def crop(random: Random, scenery: Image.Image) -> Crop:
    """A crop as a detector or the last landmarks give it: a hand upright in it, roughly."""
    ground = clutter(random, (CROP * FINE, CROP * FINE), scenery)
    palm = CROP / REGION * float(np.exp(random.normal(0, 0.07)))
    roll, away = random.normal(0, 0.14), random.normal(0, 0.035, 2) * CROP
    if random.random() < 0.15:  # a first look, by the detector
        roll, away = random.normal(0, 0.3), random.normal(0, 0.07, 2) * CROP
    if random.random() < 0.25:
        _aside(random, ground, palm, roll)
    is_empty = random.random() < EMPTY
    joints, presence = np.zeros((21, 2)), 0.0
    if not is_empty:
        middle = np.full(2, CROP / 2) + away
        wrist = middle - palm * np.array([np.sin(roll), -np.cos(roll)])
        joints = HandPen(ground).draw(anyones(random), any_hold(random, *wrist.tolist(), palm, roll))[:, :2]
        presence = 1.0
    elif random.random() < 0.3:
        _aside(random, ground, palm, roll)
    visible = np.full(21, not is_empty)
    if random.random() < 0.25:  # an edge of the picture
        angle, edge = random.uniform(0, 2 * np.pi), random.uniform(-0.25, 0.5) * CROP
        out = np.array([np.cos(angle), np.sin(angle)])
        ground = beyond(ground, out, edge * FINE)
        visible &= (joints - CROP / 2) @ out < edge
        shown = float(visible.mean())
        presence *= 1.0 if shown > 0.65 else 0.0 if shown < 0.3 else np.nan
    visible &= ((joints > -1) & (joints < CROP + 1)).all(1)
    return Crop(finished(random, ground, CROP), joints, visible, presence)


def beyond(ground: Image.Image, out: Array, edge: float) -> Image.Image:
    """Continue what lies on a line, `edge` pixels from the middle in the direction `out`, beyond it.

    So a crop samples what lies outside of its picture: the pixels of the picture's edge.
    """
    pixels = np.asarray(ground)
    side = len(pixels)
    y, x = np.mgrid[:side, :side]
    far = np.maximum((x + 0.5 - side / 2) * out[0] + (y + 0.5 - side / 2) * out[1] - edge, 0)
    columns, rows = (np.rint(at - far * way).astype(int).clip(0, side - 1) for at, way in zip((x, y), out, strict=True))
    return Image.fromarray(pixels[rows, columns])


def _aside(random: Random, ground: Image.Image, palm: float, roll: float) -> None:
    """Draw another hand, outside of the middle."""
    angle, far = random.uniform(0, 2 * np.pi), random.uniform(0.62, 0.95) * CROP
    x, y = CROP / 2 + far * np.array([np.cos(angle), np.sin(angle)]) + palm * np.array([-np.sin(roll), np.cos(roll)])
    own = palm * random.uniform(0.75, 1.25)
    HandPen(ground).draw(anyones(random), any_hold(random, x, y, own, roll + random.normal(0, 0.4)))


def finished(random: Random, ground: Image.Image, side: int) -> Array:
    """A drawing as a sensor sees it: smaller, sampled in different ways, and with a camera's errors."""
    kind = random.random()
    if kind < 0.6:
        ground = ground.resize((side, side), Image.Resampling.BOX)
        ground = ground.filter(ImageFilter.GaussianBlur(random.uniform(0, 0.6)))
    else:  # a crop samples linearly, without a wider filter for what it makes smaller
        if kind < 0.8:
            ground = ground.filter(ImageFilter.GaussianBlur(random.uniform(0.3, 1.0)))
        at = random.integers(0, FINE, 2)
        ground = Image.fromarray(np.asarray(ground)[at[0] :: FINE, at[1] :: FINE])
    return developed(random, np.asarray(ground, np.float32) / 255)
