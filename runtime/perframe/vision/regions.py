"""From boxes and landmarks to the regions that crops sample, and from landmarks in crops back to the picture.

A region is center x, center y, width, height and an angle in radians, in pixels of the picture: what
`TextureConverter.crop` takes. Positive angles turn clockwise, as y points down. Regions are float32, and at least one
pixel wide and high, so that the empty rows of `best_boxes` have valid regions too.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

import perframe.functional as F
from perframe.errors import InputError
from perframe.functional.calls import function
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.vision.detections import Sides, checked_points, floats, width_and_height

Square = Literal["long", "short"] | None


@function
def regions_of_boxes(
    boxes: Given,
    *,
    angle: Given | None = None,
    scale: float | tuple[float, float] = 1.0,
    square: Square = None,
    shift: tuple[float, float] = (0.0, 0.0),
) -> FunctionalTensor:
    """Return the regions (..., 5) of boxes (..., 4): left, top, right and bottom, in pixels of the picture.

    The center moves by `shift`, in widths and heights along the turned sides; then `square` sets both sides to the
    longer or the shorter one; then they grow by `scale`. `angle` is (...,) in radians, by default 0. Source:
    MediaPipe's RectTransformationCalculator. Raises InputError.
    """
    x = floats(boxes, 4, "boxes")
    low, high = x[..., :2], x[..., 2:]
    turn = F.zeros_like(x[..., 0]) if angle is None else floats(angle)
    return _region((low + high) / 2, high - low, turn, scale, square, shift)


@function
def regions_of_points(
    points: Given,
    start: int,
    end: int,
    *,
    target_angle: float = 0.0,
    around: Literal["points", "turned points", "circle"] = "points",
    boxes: Given | None = None,
    scale: float | tuple[float, float] = 1.0,
    square: Square = "long",
    shift: tuple[float, float] = (0.0, 0.0),
) -> FunctionalTensor:
    """Return regions (..., 5) turned by landmarks (..., k, 2 or 3), in pixels of the picture.

    A region turns so that in its crop the point `end` lies in the direction `target_angle` from `start`: 0 is to the
    right, and pi / 2 upward. It lies around `boxes` (..., 4) if they are given; else around all points, in upright or
    in turned axes, or it is the square around the circle with the center `start` through `end`. Then `shift`, `square`
    and `scale` apply as in `regions_of_boxes`. Sources: MediaPipe's DetectionsToRectsCalculator (faces, palms),
    HandLandmarksToRectCalculator (hands) and AlignmentPointsRectsCalculator (poses). Raises InputError.

    Of MediaPipe: faces are (0, 1, scale=1.5); palms (0, 2, target_angle=pi / 2, scale=2.6, shift=(0, -0.5)), both
    around their boxes; poses (0, 1, target_angle=pi / 2, around="circle", scale=1.25).
    """
    x = checked_points(points)[..., :2]
    many = x.shape[-2]
    if isinstance(many, int) and not (-many <= start < many and -many <= end < many):
        raise InputError(f"there are {many} points, and none with the index {start} or {end}")
    first, last = x[..., start, :], x[..., end, :]
    way = last - first
    turn = _normalized(target_angle - F.atan2(-way[..., 1], way[..., 0]))
    if boxes is not None:
        box = floats(boxes, 4, "boxes")
        low, high = box[..., :2], box[..., 2:]
    elif around == "points":
        low, high = F.amin(x, -2), F.amax(x, -2)
    elif around == "turned points":
        turned = _rotated(x, F.unsqueeze(-turn, -1))
        low, high = F.amin(turned, -2), F.amax(turned, -2)
        return _region(_rotated((low + high) / 2, turn), high - low, turn, scale, square, shift)
    elif around == "circle":
        reach = F.norm(way, 2, -1, keepdim=True)
        low, high = first - reach, first + reach
    else:
        raise InputError(f"around is points, turned points or circle, not {around!r}")
    return _region((low + high) / 2, high - low, turn, scale, square, shift)


@function
def points_of_regions(points: Given, regions: Given, size: Sides = 1) -> FunctionalTensor:
    """Return landmarks (..., k, 2 or 3) of crops in pixels of the picture. `regions` is (..., 5).

    `size` is the width and height of a crop in the units of its landmarks: by default these are shares of its sides. A
    third number is a depth, and grows like x. Source: MediaPipe's LandmarkProjectionCalculator. Raises InputError.
    """
    x, region = checked_points(points), F.unsqueeze(floats(regions, 5, "regions"), -2)
    sides = np.array(width_and_height(size), np.float32)
    moved = _rotated((x[..., :2] / sides - 0.5) * region[..., 2:4], region[..., 4]) + region[..., :2]
    if x.shape[-1] == 2:
        return moved
    return F.cat([moved, x[..., 2:] / sides[0] * region[..., 2:3]], -1)


def _rotated(x: FunctionalTensor, angle: FunctionalTensor) -> FunctionalTensor:
    """Turn points (..., 2) by angles (...,)."""
    cos, sin = F.cos(angle), F.sin(angle)
    return F.stack([x[..., 0] * cos - x[..., 1] * sin, x[..., 0] * sin + x[..., 1] * cos], -1)


def _normalized(angle: FunctionalTensor) -> FunctionalTensor:
    """Bring angles into -pi..pi."""
    return angle - 2 * math.pi * F.floor((angle + math.pi) / (2 * math.pi))


def _region(
    center: FunctionalTensor,
    extent: FunctionalTensor,
    angle: FunctionalTensor,
    scale: float | tuple[float, float],
    square: Square,
    shift: tuple[float, float],
) -> FunctionalTensor:
    """Shift, square and scale regions."""
    grown = np.broadcast_to(np.asarray(scale, np.float32), (2,))
    if not (grown > 0).all() or square not in (None, "long", "short"):
        raise InputError(f"scale is positive, and square None, long or short; not {scale!r} and {square!r}")
    if any(shift):
        center = center + _rotated(extent * np.asarray(shift, np.float32), angle)
    if square is not None:
        extent = (F.amax if square == "long" else F.amin)(extent, -1, keepdim=True)
    extent = F.maximum(extent * grown, 1.0)
    return F.cat([center, extent, F.unsqueeze(angle, -1)], -1)
