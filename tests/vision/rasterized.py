"""Marks as NumPy rasterizes them, and a picture to draw them over."""

from __future__ import annotations

from typing import Any

import numpy as np

import perframe as pf

WIDTH, HEIGHT = 61, 43
RANDOM = np.random.default_rng(12)
PAPER = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
YS, XS = np.mgrid[:HEIGHT, :WIDTH] + 0.5
RED, GLASS = (1.0, 0.25, 0.0), (0.0, 0.5, 1.0, 0.6)


class Target:
    """A framebuffer with a picture in it, upright."""

    def __init__(self, ctx: Any, paper: Any = PAPER) -> None:
        self.texture = ctx.texture(paper.shape[1::-1], 4, paper[::-1].tobytes())
        self.framebuffer, self.size = ctx.framebuffer([self.texture]), paper.shape[1::-1]

    def read(self) -> Any:
        pixels = np.frombuffer(self.framebuffer.read(components=4, alignment=1), np.uint8)
        return pixels.reshape(self.size[1], self.size[0], 4)[::-1]


def inked(paper: Any, color: Any, outside: Any) -> Any:
    """A picture with one mark over it; `outside` is how far each pixel lies outside of it."""
    return mixed(paper, color, np.clip(0.5 - outside, 0, 1))


def mixed(paper: Any, color: Any, coverage: Any) -> Any:
    r, g, b, a = (*color, 1.0)[:4]
    alpha = (a * coverage)[..., None]
    return np.rint(paper * (1 - alpha) + np.array([r, g, b, 1.0]) * 255 * alpha).astype(np.uint8)


def to_segment(a: Any, b: Any) -> Any:
    along, from_x, from_y = np.subtract(b, a), XS - a[0], YS - a[1]
    share = np.clip((from_x * along[0] + from_y * along[1]) / max(along @ along, 1e-12), 0, 1)
    return np.hypot(from_x - share * along[0], from_y - share * along[1])


def outline(corners: Any) -> Any:
    return np.min([to_segment(corners[k - 1], corners[k]) for k in range(len(corners))], axis=0)


def corners_of(region: Any) -> Any:
    region = np.asarray(region, float)
    if region.shape == (4,):
        left, top, right, bottom = region
        return np.array([(left, top), (right, top), (right, bottom), (left, bottom)])
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    if region.shape == (2, 3):
        return square @ region[:, :2].T + region[:, 2]
    cos, sin = np.cos(region[4]), np.sin(region[4])
    return ((square - 0.5) * region[2:4]) @ np.array([[cos, sin], [-sin, cos]]) + region[:2]


def hue(index: int) -> tuple[float, ...]:
    """The color of an id."""
    at = (index % 1024 * 0.618034 + 0.4) % 1 * 6
    return tuple(float(0.25 + 0.75 * np.clip(abs((at + turn) % 6 - 3) - 1, 0, 1)) for turn in (0, 4, 2))


def same(made: Any, wanted: Any, most: int = 2) -> None:
    np.testing.assert_allclose(made.astype(int), wanted.astype(int), atol=most)
    assert np.abs(wanted.astype(int) - PAPER).max() > 20  # something was drawn


BOXES = np.array([[5.3, 4.1, 30.2, 20], [20, 10, 70, 41.5]], np.float32)
REGIONS = np.array([[30, 20, 24, 11, 0.6], [12, 25, 30, 8, -1.2]], np.float32)
MATRICES = np.array([[[20, 4, 10], [3, 18, 8]], [[-12, 6, 40], [8, 20, 9]]], np.float32)
POINTS = np.array([[[9, 8, 0.5], [31.2, 12.7, 0], [52, 35, 1]], [[20, 30, 0], [4, 38.5, 0], [60, 2, 9]]], np.float32)
PAIRS = [(0, 1), (2, 1), (0, 0)]


def sampled(mask: Any, xs: Any, ys: Any) -> Any:
    """A mask between its elements, clamped at its edge."""
    x, y = np.floor(xs - 0.5), np.floor(ys - 0.5)
    across, down = xs - 0.5 - x, ys - 0.5 - y

    def at(row: Any, column: Any) -> Any:
        height, width = mask.shape
        return mask[np.clip(row, 0, height - 1).astype(int), np.clip(column, 0, width - 1).astype(int)].astype(float)

    top = at(y, x) * (1 - across) + at(y, x + 1) * across
    return top * (1 - down) + (at(y + 1, x) * (1 - across) + at(y + 1, x + 1) * across) * down


HOWS = {
    "letterbox": pf.TextureTransform(letterbox=0.5),
    "region": pf.TextureTransform(region=(5, 3, 50, 30)),
    "rotated": pf.TextureTransform(region=(30, 20, 40, 24, 0.4)),
    "perspective": pf.TextureTransform(region=[[40, 8, 8], [6, 30, 5], [0.3, 0.2, 1]]),
}
