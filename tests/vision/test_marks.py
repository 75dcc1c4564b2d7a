"""Marks over pictures: their pixels are those of a rasterization with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from vision.rasterized import (
    BOXES,
    GLASS,
    HEIGHT,
    HOWS,
    MATRICES,
    PAIRS,
    PAPER,
    POINTS,
    RANDOM,
    RED,
    REGIONS,
    WIDTH,
    XS,
    YS,
    Target,
    corners_of,
    hue,
    inked,
    mixed,
    outline,
    same,
    sampled,
    to_segment,
)


@pytest.mark.parametrize("regions", [BOXES, REGIONS, MATRICES], ids=["boxes", "rotated", "affine"])
def test_boxes(overlay: pf.vision.Overlay, target: Target, regions: Any) -> None:
    overlay.boxes(regions, color=GLASS, width=3)
    wanted = PAPER
    for region in regions:
        wanted = inked(wanted, GLASS, outline(corners_of(region)) - 1.5)
    same(target.read(), wanted, 3)


def test_points(overlay: pf.vision.Overlay, target: Target) -> None:
    overlay.points(POINTS, color=RED, radius=2.5)
    wanted = PAPER
    for x, y, _ in POINTS.reshape(-1, 3):
        wanted = inked(wanted, RED, np.hypot(XS - x, YS - y) - 2.5)
    same(target.read(), wanted)


def test_lines(overlay: pf.vision.Overlay, target: Target) -> None:
    overlay.lines(POINTS, PAIRS, color=GLASS, width=2)
    wanted = PAPER
    for group in POINTS:
        for a, b in PAIRS:
            wanted = inked(wanted, GLASS, to_segment(group[a, :2], group[b, :2]) - 1)
    same(target.read(), wanted, 3)


def test_masks_tint_in_proportion(overlay: pf.vision.Overlay, target: Target) -> None:
    masks = RANDOM.uniform(-0.2, 1.2, (2, 5, 7)).astype(np.float32)
    overlay.masks(masks, color=(0.0, 1.0, 0.5, 0.8), opacity=0.5)
    wanted = PAPER
    for mask in masks:
        coverage = np.clip(sampled(mask, XS * 7 / WIDTH, YS * 5 / HEIGHT), 0, 1)
        wanted = mixed(wanted, (0.0, 1.0, 0.5, 0.4), coverage)
    same(target.read(), wanted)


def test_a_sharp_mask_covers_what_is_above_its_edge(overlay: pf.vision.Overlay, target: Target) -> None:
    mask = np.hypot(*(np.mgrid[:20, :30] - np.array([10, 15])[:, None, None])).astype(np.float32)
    overlay.masks(-mask, color=RED, opacity=1.0, edge=-7.0)
    value = sampled(-mask, XS * 30 / WIDTH, YS * 20 / HEIGHT)
    made = target.read()
    assert (made[value > -6.5] == np.rint([255, 63.75, 0, 255])).all()
    np.testing.assert_array_equal(made[value < -7.5], PAPER[value < -7.5])
    assert (value > -6.5).sum() > 300


def test_a_box_over_the_letters_of_a_text(overlay: pf.vision.Overlay, target: Target) -> None:
    """A plate of whole pixels in the row's color, with black or white letters, above the box or within the target."""
    rows = np.array([[10.2, 28.4, 40, 40], [-9, 3, 20, 12]], np.float32)
    overlay.texts(["ab", ""], rows, color=np.array([[1.0, 1.0, 0.0], [0, 0, 1]]), height=16)
    made = target.read().astype(int)
    changed = np.argwhere((made != PAPER).any(2))
    assert tuple(changed.min(0)) == (12, 10) and changed.max(0)[0] == 27
    plate = made[12:28, 10 : changed.max(0)[1] + 1]
    assert (plate[..., 2] == 0).all() and (plate[..., 0] == plate[..., 1]).all()  # from yellow to black
    assert plate[..., 0].min() < 40 and (plate[..., 0] == 255).mean() > 0.4
    overlay.texts(["", "i"], rows, color=(0.0, 0.0, 0.4))
    made = target.read().astype(int)
    assert tuple(made[3, 0]) == (0, 0, 102, 255) and made[3:19, :20, 0].max() > 200  # white letters, within the target


def test_letters_that_are_not_there(overlay: pf.vision.Overlay, target: Target) -> None:
    pictures = []
    for text in ("a\u00e4\u2603\n", "aa??"):
        target.texture.write(PAPER[::-1].tobytes())
        overlay.texts([text], [(3.0, 25.0)], color=RED)
        pictures.append(target.read())
    np.testing.assert_array_equal(*pictures)


@pytest.mark.parametrize("kind", ["default", "tuple", "colors", "colors and alpha", "ids"])
def test_colors(overlay: pf.vision.Overlay, target: Target, kind: str) -> None:
    given: Any = {
        "default": None,
        "tuple": RED,
        "colors": np.array([[0.1, 0.2, 0.9], [1, 1, 0]]),
        "colors and alpha": np.array([[0.1, 0.2, 0.9, 0.3], [1, 1, 0, 0.5]]),
        "ids": np.array([7, 5 + 1024 * 50_000_001]),
    }[kind]
    overlay.points(POINTS, color=given, radius=4)
    wanted = PAPER
    for row, group in enumerate(POINTS):
        shades = {"default": hue(row), "tuple": RED, "ids": hue((7, 5)[row])}
        for x, y, _ in group:
            shade = shades[kind] if kind in shades else given[row]
            wanted = inked(wanted, shade, np.hypot(XS - x, YS - y) - 4)
    same(target.read(), wanted)


def test_rows_without_a_score_are_hidden(overlay: pf.vision.Overlay, target: Target) -> None:
    bad = np.concatenate([BOXES, [[np.nan, 0, 9, 9], [0, 0, np.inf, 9], [1, 1, 50, 30]]]).astype(np.float32)
    overlay.boxes(bad, color=RED, scores=[0.9, 0.4, 0.9, 0.9, np.nan])
    same(target.read(), inked(PAPER, RED, outline(corners_of(BOXES[0])) - 1))


def test_a_score_is_for_a_group_or_for_a_point(overlay: pf.vision.Overlay, target: Target) -> None:
    overlay.points(POINTS, color=RED, scores=[0.2, 0.9])
    overlay.lines(POINTS, PAIRS, color=GLASS, scores=[[1, 1, 0.1], [0, 1, 1]], threshold=0.3)
    wanted = PAPER
    for x, y, _ in POINTS[1]:
        wanted = inked(wanted, RED, np.hypot(XS - x, YS - y) - 3)
    for group, (a, b) in ((0, (0, 1)), (0, (0, 0)), (1, (2, 1))):
        wanted = inked(wanted, GLASS, to_segment(POINTS[group, a, :2], POINTS[group, b, :2]) - 1)
    same(target.read(), wanted, 3)


@pytest.mark.parametrize("how", HOWS.values(), ids=list(HOWS))
def test_coordinates_of_a_networks_input(overlay: pf.vision.Overlay, target: Target, how: pf.TextureTransform) -> None:
    mapping = how.mapping((WIDTH * 2, HEIGHT * 2) if how.letterbox else (WIDTH, HEIGHT), (1, 3, 32, 48))
    scale = 0.5 if how.letterbox else 1.0
    overlay.size = (round(WIDTH / scale), round(HEIGHT / scale))
    boxes = np.array([[4, 9, 30, 20], [20, 10, 40, 28]], np.float32)
    overlay.boxes(boxes, color=RED, width=2, mapping=mapping)
    wanted = PAPER
    for box in boxes:
        wanted = inked(wanted, RED, outline(mapping.to_picture(corners_of(box)) * scale) - 1)
    same(target.read(), wanted, 4)


@pytest.mark.parametrize("how", HOWS.values(), ids=list(HOWS))
def test_a_mask_of_a_networks_input(overlay: pf.vision.Overlay, target: Target, how: pf.TextureTransform) -> None:
    mapping = how.mapping((WIDTH, HEIGHT), (1, 1, 16, 24))
    mask = RANDOM.uniform(0, 1, (1, 1, 16, 24)).astype(np.float32)
    overlay.masks(mask, color=RED, mapping=mapping)
    places = mapping.to_tensor(np.stack([XS, YS], -1))
    left, top, width, height = mapping.box
    inside = (places >= (left, top)).all(-1) & (places < (left + width, top + height)).all(-1)
    part = mask[0, 0, top : top + height, left : left + width]
    value = np.where(inside, sampled(part, places[..., 0] - left, places[..., 1] - top), 0)
    wanted = mixed(PAPER, (*RED, 0.5), value)
    near = np.abs(target.read().astype(int) - wanted).max(-1) <= 3
    assert near.mean() > 0.995 and inside.sum() > 300  # a pixel on the region's edge may go either way
