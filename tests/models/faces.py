"""Two face detectors: how a picture goes in, and how boxes come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import perframe as pf

Array = NDArray[Any]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def anchors() -> Array:
    """The 896 anchor points of MediaPipe's short-range model: two in each cell of 16 x 16, six in each of 8 x 8."""
    points = []
    for cells, count in ((16, 2), (8, 6)):
        rows, columns = np.mgrid[:cells, :cells] + 0.5
        points.append(np.stack([columns, rows], -1).reshape(-1, 2).repeat(count, 0) / cells)
    return np.concatenate(points)


def blaze_face(outputs: Mapping[str, Array]) -> tuple[Box, float]:
    """The best face in 0..1 of the input, and its score."""
    logits, numbers = outputs["classificators"][0, :, 0], outputs["regressors"][0].astype(np.float64)
    best = int(logits.argmax())
    (x, y), (w, h) = numbers[best, :2] / 128 + anchors()[best], numbers[best, 2:4] / 128
    return (x - w / 2, y - h / 2, x + w / 2, y + h / 2), float(1 / (1 + np.exp(-logits[best])))


def ultra_face(outputs: Mapping[str, Array]) -> tuple[Box, float]:
    """The best face in 0..1 of the input, and its score."""
    scores = outputs["scores"][0, :, 1]
    best = int(scores.argmax())
    left, top, right, bottom = map(float, outputs["boxes"][0, best])
    return (left, top, right, bottom), float(scores[best])


@dataclass(frozen=True)
class Detector:
    """A model, how its input is made from a picture, and how its outputs are read."""

    name: str
    shape: tuple[int, int, int, int]
    transform: pf.TextureTransform
    decode: Callable[[Mapping[str, Array]], tuple[Box, float]]

    def __str__(self) -> str:
        return self.name

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the input."""
        return self.shape[2:0:-1] if self.transform.layout == "NHWC" else self.shape[:1:-1]  # type: ignore[return-value]

    def box(self, outputs: Mapping[str, Array], region: Box) -> tuple[Box, float]:
        """The face in pixels of the picture, and its score. `region` (x, y, width, height) was the input."""
        (left, top, right, bottom), score = self.decode(outputs)
        x, y, w, h = region
        return (x + left * w, y + top * h, x + right * w, y + bottom * h), score


DETECTORS = (
    Detector(
        "blaze_face_short_range",
        (1, 128, 128, 3),
        pf.TextureTransform(mean=0.5, std=0.5, layout="NHWC"),
        blaze_face,
    ),
    Detector(
        "ultraface_rfb_320",
        (1, 3, 240, 320),
        pf.TextureTransform(mean=127 / 255, std=128 / 255),
        ultra_face,
    ),
)


def overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return width * height / (sum(areas) - width * height)
