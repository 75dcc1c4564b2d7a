"""Greedy suppression, and MediaPipe's weighted one, box by box."""

from __future__ import annotations

from typing import Any

import numpy as np


def overlap(a: Any, b: Any) -> float:
    width, height = (max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in range(2))
    common = width * height
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common) if common else 0.0


def suppressed(
    given: dict[str, Any], count: int, iou: float, least: float, blend: bool, candidates: int
) -> tuple[Any, ...]:
    """The rows of one picture, picked one by one."""
    boxes, scores = given["boxes"].astype(float), given["scores"]
    left = sorted((i for i in range(len(boxes)) if scores[i] > least), key=lambda i: (-scores[i], i))[:candidates]
    classes, points = given.get("classes"), given.get("points")
    rows = np.zeros((count, 4)), np.zeros(count), np.zeros(count), np.full(count, -1)
    marks = None if points is None else np.zeros((count, *points.shape[1:]))
    found = 0
    while left and found < count:
        best = left[0]
        same = [
            i
            for i in left
            if i == best or ((classes is None or classes[i] == classes[best]) and overlap(boxes[i], boxes[best]) > iou)
        ]
        group = same if blend else [best]
        weights = scores[group].astype(float) / scores[group].astype(float).sum()
        rows[0][found], rows[1][found], rows[3][found] = weights @ boxes[group], scores[best], best
        rows[2][found] = 0 if classes is None else classes[best]
        if marks is not None:
            marks[found] = np.tensordot(weights, points[group].astype(float), 1)
        left, found = [i for i in left if i not in same], found + 1
    return rows[0], rows[1], None if classes is None else rows[2], marks, rows[3], found
