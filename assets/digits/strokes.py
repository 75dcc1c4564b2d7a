"""Digits as pens draw them: strokes between points of a few ways of writing each digit, bent and shaken."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

SIDE = 28
"""Pixels of a side, as of the network's input."""

# Ways of writing each digit. A stroke is points: x and y from the top left corner, in hundredths. "/" lifts the pen.
WAYS = {
    0: (
        "50,4 63,8 74,17 81,32 84,50 81,68 74,83 63,92 50,96 37,92 26,83 19,68 16,50 19,32 26,17 37,8 50,4",
        "81,32 84,50 81,68 74,83 63,92 50,96 37,92 26,83 19,68 16,50 19,32 26,17 37,8 50,4 63,8 74,17 81,32",
    ),
    1: (
        "50,4 50,96",
        "28,26 52,4 52,96",
        "28,26 52,4 52,96 / 26,96 78,96",
    ),
    2: (
        "18,26 30,9 52,4 76,14 78,34 60,58 16,95 86,95",
        "20,22 40,5 70,10 78,30 62,58 36,86 20,92 22,80 40,82 62,94 86,88",
    ),
    3: (
        "20,14 46,4 74,14 74,36 46,48 78,58 82,80 56,96 18,86",
        "20,5 78,5 46,42 76,52 82,76 56,96 18,86",
    ),
    4: (
        "62,4 14,66 88,66 / 64,40 64,97",
        "24,5 20,52 80,52 / 76,5 72,97",
        "66,97 66,4 14,66 88,66",
    ),
    5: (
        "80,5 28,5 24,44 52,38 80,52 82,78 56,96 18,88",
        "28,6 24,46 54,40 80,56 78,82 50,96 18,88 / 28,6 80,5",
    ),
    6: (
        "72,6 42,22 22,56 24,82 48,96 76,86 78,64 56,50 30,60 23,76",
        "50,3 28,30 20,70 34,94 64,94 80,74 64,54 34,56 21,72",
    ),
    7: (
        "16,6 84,6 40,97",
        "16,6 84,6 40,97 / 34,50 78,50",
        "18,20 18,6 82,6 60,40 46,97",
    ),
    8: (
        "50,48 26,34 28,12 50,4 72,12 74,34 50,48 20,64 22,86 50,96 78,86 80,64 50,48",
        "74,14 50,4 26,16 36,40 68,58 78,80 50,96 22,82 36,58 66,38 74,14",
    ),
    9: (
        "76,30 66,10 42,5 22,20 26,42 50,50 74,36 77,20 76,60 70,97",
        "74,26 56,6 28,12 22,34 44,50 70,40 75,22 74,70 56,95 26,90",
    ),
}


def strokes_of(way: str) -> list[np.ndarray]:
    """The strokes of a way of writing, each with its points in 0..1."""
    strokes = (stroke.split() for stroke in way.split("/"))
    return [np.array([point.split(",") for point in stroke], float) / 100 for stroke in strokes]


def smooth(points: np.ndarray, per_point: int = 6) -> np.ndarray:
    """A Catmull-Rom curve through the points."""
    ends = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    t = (np.arange(per_point) / per_point)[:, None]
    parts = [
        0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
        for a, b, c, d in zip(ends[:-3], ends[1:-2], ends[2:-1], ends[3:], strict=True)
    ]
    return np.concatenate([*parts, points[-1:]])


def write(digit: int, random: np.random.Generator) -> np.ndarray:
    """A digit as someone writes it: SIDE × SIDE float32, 1 for ink. Every call is another hand."""
    way = strokes_of(WAYS[digit][random.integers(len(WAYS[digit]))])
    large = SIDE * 4
    picture = Image.new("L", (large, large))
    pen = ImageDraw.Draw(picture)
    width = max(3, round(float(random.uniform(0.06, 0.13)) * large))
    turn, shear = random.normal(0, 0.12), random.normal(0, 0.18)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ np.array([[1, shear], [0, 1]])
    scale = np.array([random.uniform(0.4, 0.85), random.uniform(0.6, 0.95)]) * random.uniform(0.75, 1.0)
    bend = random.normal(0, 0.05, 4)
    drawn = []
    for stroke in way:
        points = stroke + random.normal(0, 0.028, stroke.shape)
        points = smooth(points) if random.random() < 0.85 else points
        points = points + np.sin(np.pi * (points[:, ::-1] + bend[:2])) * bend[2:]
        drawn.append((points - 0.5) * scale @ matrix.T)
    low, high = np.concatenate(drawn).min(0), np.concatenate(drawn).max(0)
    shift = random.uniform(-0.06, 0.06, 2) - (low + high) / 2 + 0.5
    for points in drawn:
        line = [(float(x), float(y)) for x, y in (points + shift) * large]
        pen.line(line, fill=255, width=width, joint="curve")
        for x, y in (line[0], line[-1]):
            pen.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), fill=255)
    ink = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX), np.float32) / 255
    return np.clip(ink * random.uniform(0.9, 1.4), 0, 1)
