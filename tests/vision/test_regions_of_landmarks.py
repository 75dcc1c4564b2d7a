"""Regions of boxes and landmarks by MediaPipe's rules, written here step by step; points of crops in the picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Draw
from perframe.textures.regions import Warp
from perframe.vision import Detections, points_of_regions, regions_of_boxes, regions_of_points, to_picture
from vision.running import close, run

draw = Draw(73)


def transformed(rect: list[float], scale: Any, square: Any, shift: Any) -> list[float]:
    """MediaPipe's RectTransformationCalculator, with sides in pixels."""
    x, y, width, height, angle = rect
    dx, dy = width * shift[0], height * shift[1]
    x += dx * math.cos(angle) - dy * math.sin(angle)
    y += dx * math.sin(angle) + dy * math.cos(angle)
    if square:
        width = height = max(width, height) if square == "long" else min(width, height)
    across, down = (scale, scale) if isinstance(scale, (int, float)) else scale
    return [x, y, max(width * across, 1), max(height * down, 1), angle]


def box_of(points: Any) -> tuple[float, float, float, float]:
    low, high = points.min(0), points.max(0)
    return (low[0] + high[0]) / 2, (low[1] + high[1]) / 2, high[0] - low[0], high[1] - low[1]


def turn_of(points: Any, start: int, end: int, target: float) -> float:
    (x0, y0), (x1, y1) = points[start, :2], points[end, :2]
    angle = target - math.atan2(-(y1 - y0), x1 - x0)
    return angle - 2 * math.pi * math.floor((angle + math.pi) / (2 * math.pi))


SETTINGS = [
    {},
    {"scale": 1.5, "square": "long"},
    {"scale": (2.0, 0.5), "square": "short", "shift": (0.25, -0.5)},
    {"shift": (0.0, 0.3)},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_regions_of_boxes(settings: dict[str, Any], turned: bool, backend: str, backend_context: Any) -> None:
    low = draw(2, 5, 2, low=0, high=90)
    arrays = {"boxes": np.concatenate([low, low + draw(2, 5, 2, low=3, high=50)], -1)}
    arrays |= {"angle": draw(2, 5, low=-3, high=3)} if turned else {}
    arrays["boxes"][0, 0] = 0
    (found,) = run(lambda **given: regions_of_boxes(**given, **settings), arrays, backend, backend_context)
    wanted = [
        transformed(
            [
                *box_of(arrays["boxes"][i, j].astype(float).reshape(2, 2)),
                float(arrays["angle"][i, j]) if turned else 0.0,
            ],
            settings.get("scale", 1.0),
            settings.get("square"),
            settings.get("shift", (0, 0)),
        )
        for i in range(2)
        for j in range(5)
    ]
    close(found, np.reshape(wanted, (2, 5, 5)))


@pytest.mark.parametrize("around", ["points", "turned points", "circle", "boxes"])
@pytest.mark.parametrize(("target", "settings"), [(0.0, SETTINGS[1]), (math.pi / 2, SETTINGS[2])])
def test_regions_of_points(
    around: Any, target: float, settings: dict[str, Any], backend: str, backend_context: Any
) -> None:
    arrays = {"points": draw(6, 4, 3, low=0, high=99), "boxes": draw(6, 2, 2, low=0, high=99)}
    arrays["boxes"] = np.concatenate([arrays["boxes"].min(1), arrays["boxes"].max(1)], -1)
    how = settings if around == "boxes" else settings | {"around": around}

    def make(points: Any, boxes: Any) -> Any:
        given = {"boxes": boxes} if around == "boxes" else {}
        return regions_of_points(points, 0, 2, target_angle=target, **how, **given)

    (found,) = run(make, arrays, backend, backend_context)
    wanted = []
    for points, box in zip(arrays["points"].astype(float), arrays["boxes"].astype(float), strict=True):
        angle = turn_of(points, 0, 2, target)
        cos, sin = math.cos(angle), math.sin(angle)
        rect = box_of(points[:, :2] if around == "points" else box.reshape(2, 2))
        if around == "turned points":
            back = np.stack([points[:, 0] * cos + points[:, 1] * sin, points[:, 1] * cos - points[:, 0] * sin], 1)
            x, y, width, height = box_of(back)
            rect = x * cos - y * sin, x * sin + y * cos, width, height
        if around == "circle":
            reach = math.dist(points[0, :2], points[2, :2])
            rect = points[0, 0], points[0, 1], 2 * reach, 2 * reach
        args = settings.get("scale", 1.0), settings.get("square"), settings.get("shift", (0, 0))
        wanted.append(transformed([*rect, angle], *args))
    close(found, np.array(wanted), 1e-4)
    assert found is not None and (np.abs(found[:, 4]) <= math.pi + 1e-5).all()


def test_in_its_crop_a_face_is_upright() -> None:
    """The eyes of a turned face lie side by side there, the left one of the picture on the left."""
    eyes = np.array([[[40, 30], [60, 50]]], np.float32)  # 45 degrees clockwise
    (region,) = run(lambda p: regions_of_points(p, 0, 1, scale=2.0), {"p": eyes}, "cpu", None)
    assert region is not None
    matrix = Warp.of(tuple(map(float, region[0]))).matrix  # type: ignore[union-attr]
    inside = np.linalg.inv(matrix) @ np.append(eyes[0], [[1], [1]], 1).T
    np.testing.assert_allclose(region[0, 4], math.pi / 4, rtol=1e-6)
    np.testing.assert_allclose(inside[1, 0], inside[1, 1], atol=1e-6)
    assert inside[0, 0] < inside[0, 1]


@pytest.mark.parametrize(("numbers", "size"), [(2, 1), (3, (64, 48))])
def test_points_of_crops_lie_where_the_crop_was_sampled(
    numbers: int, size: Any, backend: str, backend_context: Any
) -> None:
    regions = draw(3, 5, low=5, high=90)
    regions[:, 4] = (0, 0.7, -2.5)
    sides = np.broadcast_to(size, (2,))
    points = draw(3, 6, numbers, low=0, high=1) * np.append(sides, 5)[:numbers].astype(np.float32)
    arrays = {"points": points, "regions": regions}
    (found,) = run(lambda **given: points_of_regions(**given, size=size), arrays, backend, backend_context)
    assert found is not None
    for crop, region, there in zip(points.astype(float), regions.astype(float), found, strict=True):
        warp = Warp.of(tuple(region))
        if warp is None:
            continue
        unit = np.append(crop[:, :2] / sides, np.ones((6, 1)), 1)
        close(there[:, :2], (unit @ warp.matrix.T)[:, :2], 1e-4)
        if numbers == 3:
            close(there[:, 2], crop[:, 2] / sides[0] * region[2], 1e-4)


@pytest.mark.parametrize("region", [None, (10, 20, 200, 100), (150, 120, 90, 70, 0.6)], ids=str)
def test_to_picture_maps_like_the_transform(region: Any, backend: str, backend_context: Any) -> None:
    mapping = pf.TextureTransform(region=region, letterbox=0.0).mapping((640, 360), (1, 3, 128, 96))
    low = draw(2, 5, 2, low=0, high=70)
    arrays = {
        "boxes": np.concatenate([low, low + draw(2, 5, 2, low=1, high=20)], -1),
        "scores": draw(2, 5),
        "points": draw(2, 5, 3, 3, low=0, high=90),
    }
    boxes, _, _, points = run(lambda **g: to_picture(Detections(**g), mapping), arrays, backend, backend_context)
    close(boxes, mapping.boxes_to_picture(arrays["boxes"]), 1e-4)
    assert points is not None
    close(points[..., :2], mapping.to_picture(arrays["points"][..., :2]), 1e-4)
    np.testing.assert_array_equal(points[..., 2], arrays["points"][..., 2])


POINTS, BOXES = np.zeros((2, 4, 2), np.float32), np.zeros((2, 4), np.float32)
WARP = [[1, 0, 0], [0, 1, 0], [0.2, 0, 1]]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: regions_of_boxes(POINTS), "boxes has 4"),
        (lambda: regions_of_boxes(BOXES, scale=0), "scale"),
        (lambda: regions_of_boxes(BOXES, square="wide"), "square"),  # type: ignore[arg-type]
        (lambda: regions_of_points(POINTS, 0, 4), "index 0 or 4"),
        (lambda: regions_of_points(POINTS, 0, 1, around="all"), "around"),  # type: ignore[arg-type]
        (lambda: regions_of_points(BOXES, 0, 1), "points are"),
        (lambda: points_of_regions(POINTS, BOXES), "regions has 5"),
        (lambda: to_picture(Detections(BOXES, BOXES[:, 0]), None), "mapping"),  # type: ignore[arg-type]
        (
            lambda: to_picture(
                Detections(BOXES, BOXES[:, 0]),  # type: ignore[arg-type]
                pf.TextureTransform(region=np.array(WARP) * 9).mapping((9, 9), (1, 3, 4, 4)),
            ),
            "perspective",
        ),
    ],
)
def test_what_does_not_fit_is_an_error(call: Any, said: str) -> None:
    with pytest.raises(pf.InputError, match=said):
        call()
