"""Finders of faces: what their files look like, what they want to see, and how their numbers become faces."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

import perframe as pf
from perframe.errors import ModelError

from ..common.models import listed, sides

Array = np.ndarray[Any, Any]

SAME = 0.3  # boxes that overlap by so much of both are one face
MOST = 32  # faces that are shown
_WANTED = (
    "a BlazeFace has one float32 input (1, side, side, 3) and outputs (1, 896, 16) and (1, 896, 1); an UltraFace has "
    "one of 3 channels, and outputs (1, boxes, 4) and (1, boxes, 2)"
)


@dataclass(frozen=True)
class Found:
    """A face: its probability, its box (left, top, right, bottom), and its points (count, 2) if its finder has any."""

    sure: float
    box: Array
    points: Array


class Finder(Protocol):
    """A kind of file. Places are elements of its input, from the top left corner."""

    name: str
    sure: float
    """The probability from which on a box counts."""
    shape: tuple[int, int, int, int]
    """Of the input."""
    transform: pf.TextureTransform
    """From a picture to the input."""

    def candidates(self, outputs: dict[str, Array]) -> tuple[Array, Array, Array]:
        """The boxes that may be faces: their probabilities (n), the boxes (n, 4), their points (n, count, 2)."""
        ...


class BlazeFace:
    """MediaPipe's BlazeFace of short range, and our own file: boxes and six points from 896 anchors."""

    name = "BlazeFace"
    sure = 0.5
    anchors = 896

    def __init__(self, side: int) -> None:
        self.shape, self._side = (1, side, side, 3), side
        self.transform = pf.TextureTransform(resample="antialias", letterbox=0.0, range=(-1, 1), layout="NHWC")
        grids = ((16, 2), (8, 6))  # cells a side, and anchors in the middle of each
        places = []
        for cells, anchors in grids:
            y, x = (np.mgrid[:cells, :cells] + 0.5) * (side / cells)
            places.append(np.repeat(np.stack([x, y], -1).reshape(-1, 2), anchors, 0))
        self.anchors_at = np.concatenate(places)
        """Their middles (896, 2), in pixels of the input."""

    def candidates(self, outputs: dict[str, Array]) -> tuple[Array, Array, Array]:
        """A box's middle counts from its anchor, and so do the points."""
        scores, regressors = _by_last_dim(outputs, 1)[:, 0], _by_last_dim(outputs, 16)
        sure = 1 / (1 + np.exp(-np.clip(scores, -60, 60)))
        kept = sure > self.sure
        values, anchors = regressors[kept], self.anchors_at[kept]
        middle, half = values[:, :2] + anchors, values[:, 2:4] / 2
        points = values[:, 4:].reshape(-1, 6, 2) + anchors[:, None]
        return sure[kept], np.concatenate([middle - half, middle + half], 1), points


class UltraFace:
    """Linzaer's Ultra-Light-Fast-Generic-Face-Detector. Most of its files give boxes as shares of the input's sides;
    in others boxes still count from their anchors, in units of the anchors' variances.
    """

    name = "UltraFace"
    sure = 0.75

    def __init__(self, shape: tuple[int, int, int, int], is_nhwc: bool) -> None:
        self.shape = shape
        self._size = np.array((shape[2], shape[1]) if is_nhwc else (shape[3], shape[2]))
        layout = "NHWC" if is_nhwc else "NCHW"
        self.transform = pf.TextureTransform(
            resample="antialias", letterbox=0.0, mean=127 / 255, std=128 / 255, layout=layout
        )
        self._anchors = self._make_anchors()

    def _make_anchors(self) -> Array:
        """Each anchor's middle, width and height, as shares (count, 4)."""
        grids = ((8, (10, 16, 24)), (16, (32, 48)), (32, (64, 96)), (64, (128, 192, 256)))  # pixels of a cell; sides
        made = []
        for cell, widths in grids:
            columns, rows = -(-self._size // cell)
            y, x = (np.mgrid[:rows, :columns] + 0.5) * cell
            middle = np.repeat(np.stack([x, y], -1).reshape(-1, 2), len(widths), 0)
            side = np.tile(np.array(widths, float), rows * columns)[:, None]
            made.append(np.concatenate([middle, side, side], 1) / np.tile(self._size, 2))
        places: Array = np.clip(np.concatenate(made), 0, 1)
        return places

    def _corners(self, boxes: Array) -> Array:
        """Boxes as shares, whatever the file gives."""
        if (boxes[:, 2:] >= boxes[:, :2]).all() or len(boxes) != len(self._anchors):
            return boxes  # the right is right of the left in each: these are corners already
        middle = boxes[:, :2] * 0.1 * self._anchors[:, 2:] + self._anchors[:, :2]
        half = np.exp(boxes[:, 2:] * 0.2) * self._anchors[:, 2:] / 2
        return np.concatenate([middle - half, middle + half], 1)

    def candidates(self, outputs: dict[str, Array]) -> tuple[Array, Array, Array]:
        """The second score is the probability of a face."""
        sure, boxes = _by_last_dim(outputs, 2)[:, 1], self._corners(_by_last_dim(outputs, 4))
        kept = sure > self.sure
        return sure[kept], boxes[kept] * np.tile(self._size, 2), np.zeros((int(kept.sum()), 0, 2))


def finder_of(model: pf.Model, file: str) -> Finder:
    """What kind of finder a model is, by its inputs and outputs. Raises ModelError if it is none."""
    if len(model.inputs) == 1 and model.inputs[0].dtype == "float32":
        shape = [1, *sides(model.inputs[0])[1:]]
        outputs = [sides(output) for output in model.outputs if output.shape is not None]
        last = sorted(dims[-1] for dims in outputs if dims)
        is_nhwc = shape[3:] == [3]
        if len(shape) == 4 and min(shape) > 0 and 3 in (shape[1], shape[3]):
            counts = {prod(dims[:-1]) for dims in outputs}
            if is_nhwc and last == [1, 16] and counts == {BlazeFace.anchors} and shape[1] == shape[2]:
                return BlazeFace(shape[1])
            if last == [2, 4]:
                return UltraFace((1, shape[1], shape[2], shape[3]), is_nhwc)
    raise ModelError(f"{file} is not a face detector this demo supports: it has {listed(model)}; {_WANTED}")


def merged(sure: Array, boxes: Array, points: Array) -> list[Found]:
    """Candidates to faces, the surest first. Boxes that overlap are one face, at their mean, weighted by probability:
    BlazeFace's answer to jitter.
    """
    faces: list[Found] = []
    left = np.argsort(-sure)
    while len(left) and len(faces) < MOST:
        same = overlap(boxes[left[0]], boxes[left]) >= SAME
        same[0] = True
        group = left[same]
        weights = sure[group] / sure[group].sum()
        box, marks = np.einsum("n,nk->k", weights, boxes[group]), np.einsum("n,nkd->kd", weights, points[group])
        faces.append(Found(float(sure[group[0]]), box, marks))
        left = left[~same]
    return faces


def overlap(box: Array, boxes: Array) -> Array:
    """The area that a box shares with each of the boxes (n, 4), by the area that they cover together."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    shared = np.clip(high - low, 0, None).prod(1)
    areas = np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(1)
    whole = np.clip(box[2:] - box[:2], 0, None).prod() + areas - shared
    result: Array = shared / np.maximum(whole, 1e-9)
    return result


def _by_last_dim(outputs: dict[str, Array], last: int) -> Array:
    """The output whose last dim is this one, as (n, last)."""
    return next(values for values in outputs.values() if values.shape[-1] == last).reshape(-1, last)
