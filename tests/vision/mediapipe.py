"""Networks with random weights and the shapes of MediaPipe's, and MediaPipe's rules in NumPy, step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import perframe as pf
from vision.greedy import suppressed
from vision.running import sigmoid

F = pf.functional
Array = Any


@dataclass(frozen=True)
class DetectorForm:
    """A detector: its input's side, the grids (side, anchors of a cell), its points, and how a region follows."""

    side: int
    grids: tuple[tuple[int, int], ...]
    points: int
    strides: tuple[int, ...]
    rule: dict[str, Any]


@dataclass(frozen=True)
class ReaderForm:
    """A landmark network: its input's side, its points and the numbers of each, and the points that span a region."""

    side: int
    points: int
    numbers: int
    span: tuple[int, int]
    rule: dict[str, Any]


PALM = DetectorForm(192, ((24, 2), (12, 6)), 7, (8, 16, 16, 16), {"scale": 2.6, "shift": (0, -0.5)})
HAND = ReaderForm(224, 21, 3, (0, 9), {"scale": 2.0, "shift": (0, -0.1), "around": "turned points"})
POSE = DetectorForm(224, ((28, 2), (14, 2), (7, 6)), 4, (8, 16, 32, 32, 32), {"scale": 1.25, "around": "circle"})
BODY = ReaderForm(256, 39, 5, (33, 34), {"scale": 1.25, "around": "circle"})


def detector_model(of: DetectorForm, random: np.random.Generator) -> pf.Model:
    """(1, side, side, 3) → `boxes` (1, anchors, 4 + 2 * points), `logits` (1, anchors, 1): one convolution a grid."""
    graph, numbers = pf.FunctionalGraph("detector"), 5 + 2 * of.points
    seen = F.permute(graph.add_input("float32", (1, of.side, of.side, 3), "seen"), 0, 3, 1, 2)
    made = []
    for cells, anchors in of.grids:
        stride = of.side // cells
        weight = random.normal(0, 6.0 / stride, (anchors, numbers, 3, stride, stride)).astype(np.float32)
        weight -= weight.mean((2, 3, 4), keepdims=True)
        weight[:, 0] *= 0.4
        bias = np.zeros((anchors, numbers), np.float32)
        bias[:, 0], bias[:, 3:5] = -2.5, 45.0
        grid = F.conv2d(seen, weight.reshape(-1, 3, stride, stride), bias.reshape(-1), stride=stride)
        made.append(F.reshape(F.permute(grid, 0, 2, 3, 1), (1, cells * cells * anchors, numbers)))
    raw = F.cat(made, 1)
    return graph.compile(boxes=raw[..., 1:], logits=raw[..., :1])


def reader_model(of: ReaderForm, random: np.random.Generator) -> pf.Model:
    """(1, side, side, 3) → `points` (1, points * numbers) in pixels, and `score` (1, 1)."""
    graph, cells = pf.FunctionalGraph("reader"), 8
    seen = F.permute(graph.add_input("float32", (1, of.side, of.side, 3), "seen"), 0, 3, 1, 2)
    stride, outputs = of.side // cells, of.points * of.numbers
    small = F.conv2d(seen, random.normal(0, 2 / stride, (8, 3, stride, stride)).astype(np.float32), stride=stride)
    flat = F.flatten(F.tanh(small), 1)
    weight = random.normal(0, 1.2, (8 * cells * cells, outputs)).astype(np.float32)
    points = F.matmul(flat, weight) + np.float32(of.side / 2)
    return graph.compile(points=points, score=F.sigmoid(points[:, :1] * 0.01))


def region_of(points: Array, box: Array | None, start: int, end: int, rule: dict[str, Any]) -> Array:
    """A region: center, size and angle; upright in it, the point `end` lies above `start`. In pixels."""
    (x0, y0), (x1, y1) = points[start, :2], points[end, :2]
    turn = math.pi / 2 - math.atan2(-(y1 - y0), x1 - x0)
    turn -= 2 * math.pi * math.floor((turn + math.pi) / (2 * math.pi))
    cos, sin = math.cos(turn), math.sin(turn)
    axes = np.array([[cos, -sin], [sin, cos]])
    if rule.get("around") == "circle":
        center, extent = points[start, :2], np.full(2, 2 * math.dist((x0, y0), (x1, y1)))
    elif rule.get("around") == "turned points":
        inside = points[:, :2] @ axes
        low, high = inside.min(0), inside.max(0)
        center, extent = axes @ ((low + high) / 2), high - low
    else:
        assert box is not None
        center, extent = (box[:2] + box[2:]) / 2, box[2:] - box[:2]
    center = center + axes @ (extent * rule.get("shift", (0, 0)))
    side = max(extent.max() * rule["scale"], 1)
    return np.array([*center, side, side, turn])


def found_regions(
    of: DetectorForm, boxes: Array, logits: Array, size: tuple[int, int], count: int
) -> tuple[Array, Array]:
    """The regions (count, 5) of what raw outputs show, in pixels of a picture of this width and height, and scores."""
    places = [
        ((column + 0.5) / cells * of.side, (row + 0.5) / cells * of.side)
        for cells, anchors in of.grids
        for row in range(cells)
        for column in range(cells)
        for _ in range(anchors)
    ]
    raw = boxes.astype(np.float64)
    middle, half = raw[:, :2] + places, raw[:, 2:4] / 2
    points = raw[:, 4:].reshape(len(raw), -1, 2) + np.array(places)[:, None]
    by, offset = max(size) / of.side, (np.array(size) - max(size)) / 2  # the letterbox
    given = {"boxes": np.concatenate([middle - half, middle + half], 1) * by + np.tile(offset, 2)}
    given |= {"scores": sigmoid(logits[:, 0]), "points": points * by + offset}
    kept, scores, _, marks, _, found = suppressed(given, count, 0.3, 0.5, True, 256)
    assert marks is not None and found == count, "there is enough to choose from"
    rows = [region_of(marks[row], kept[row], 0, 2 if of is PALM else 1, of.rule) for row in range(count)]
    return np.array(rows), scores


def cropped(picture: Array, region: Array, side: int) -> Array:
    """Sample a rotated region of a picture (H, W, 3) linearly: (side, side, 3). Outside, the edge is repeated."""
    y, x = (np.mgrid[:side, :side] + 0.5) / side - 0.5
    cos, sin = math.cos(region[4]), math.sin(region[4])
    at_x = region[0] + region[2] * x * cos - region[3] * y * sin - 0.5
    at_y = region[1] + region[2] * x * sin + region[3] * y * cos - 0.5
    left, top = np.floor(at_x), np.floor(at_y)
    made = np.zeros((side, side, 3))
    for right, below in ((0, 0), (1, 0), (0, 1), (1, 1)):
        share = (at_x - left if right else left + 1 - at_x) * (at_y - top if below else top + 1 - at_y)
        columns = np.clip(left + right, 0, picture.shape[1] - 1).astype(int)
        rows = np.clip(top + below, 0, picture.shape[0] - 1).astype(int)
        made += share[..., None] * picture[rows, columns]
    return made


def points_there(of: ReaderForm, raw: Array, region: Array) -> Array:
    """Landmarks (points, 3) in pixels of the picture, from a network's output (points * numbers,)."""
    points = raw.astype(np.float64).reshape(of.points, of.numbers)[:, :3]
    cos, sin = math.cos(region[4]), math.sin(region[4])
    x, y = ((points[:, axis] / of.side - 0.5) * region[2 + axis] for axis in range(2))
    depth = points[:, 2] / of.side * region[2]
    return np.stack([region[0] + x * cos - y * sin, region[1] + x * sin + y * cos, depth], 1)
