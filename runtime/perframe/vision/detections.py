"""Detections as functional tensors, and what functions that make or change them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np

import perframe.functional as F
from perframe.errors import InputError
from perframe.functional.calls import apply, function
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.textures.transform import PictureMap

Sides = int | tuple[int, int]  # of a picture or a tensor: one number for both, or width and height


class Detections(NamedTuple):
    """Boxes that a decoder found, with scores. A batch, if there is one, is the first dim of each.

    `boxes` is (n, 4): left, top, right and bottom, in pixels of the network's input, from its top left corner. `scores`
    is (n,), `classes` (n,) of int64, and `points` (n, k, 2): x and y in the same pixels, or (n, k, 3) with one more
    number.
    """

    boxes: FunctionalTensor
    scores: FunctionalTensor
    classes: FunctionalTensor | None = None
    points: FunctionalTensor | None = None


def each(detections: Detections, change: Callable[[FunctionalTensor], FunctionalTensor]) -> Detections:
    """Return detections with each tensor changed."""
    return Detections._make(None if x is None else change(x) for x in detections)


def width_and_height(size: Sides) -> tuple[float, float]:
    """Return both sides. Raises InputError for anything but one or two positive numbers."""
    sides = (size, size) if isinstance(size, (int, float)) else tuple(size)
    if len(sides) != 2 or not all(0 < float(side) < float("inf") for side in sides):
        raise InputError(f"a size is one positive number, or a width and a height, not {size!r}")
    return float(sides[0]), float(sides[1])


def is_whole(number: object) -> bool:
    """Whether it is an integer of Python or NumPy, and no bool."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def fits(dim: object, size: int) -> bool:
    """Whether a dim is a size, or may become it when the model runs."""
    return not isinstance(dim, int) or dim == size


def floats(given: Given, last: int | None = None, what: str = "input") -> FunctionalTensor:
    """Return a tensor as float32. Raises InputError unless its last dim may be `last`."""
    x = F.to(F.as_tensor(given), "float32")
    if not x.ndim or (last is not None and not fits(x.shape[-1], last)):
        raise InputError(f"{what} has {last or 'one or more numbers'} in its last dim, and not the shape {x.shape}")
    return x


def from_centers(x: FunctionalTensor) -> FunctionalTensor:
    """Return boxes (..., 4) of center x, center y, width and height as left, top, right and bottom."""
    middle, half = x[..., :2], x[..., 2:4] / 2
    return F.cat([middle - half, middle + half], -1)


def best_class(scores: FunctionalTensor, axis: int = -1) -> tuple[FunctionalTensor, FunctionalTensor | None]:
    """Return the best of each box's scores along an axis, and its class; None if there is one class only."""
    if scores.shape[axis] == 1:
        return F.squeeze(scores, axis), None
    best = F.max(scores, axis)
    return best.values, best.indices


def rows_at(x: FunctionalTensor, index: FunctionalTensor) -> FunctionalTensor:
    """Return rows of x (batch, n, ...) at indices (batch, k): (batch, k, ...)."""
    if x.shape[0] == 1:  # one kernel on a GPU instead of two
        return apply("Gather", F.squeeze(x, 0), index, axis=0)
    return apply("GatherND", x, F.unsqueeze(index, -1), batch_dims=1)


@function
def to_picture(detections: Detections, mapping: PictureMap) -> Detections:
    """Map detections from pixels of the network's input to pixels of the picture that a transform sampled.

    `mapping` is `TextureTransform(...).mapping(picture_size, shape)`; its numbers become constants of the model. Boxes
    of a rotated region become the upright boxes around them, as `PictureMap.boxes_to_picture` has it. Map before
    `best_boxes`, whose empty rows stay 0 then. Raises InputError for a region with perspective.
    """
    matrix, offset = _affine(mapping)
    points = detections.points
    if points is not None:
        x = floats(points)
        moved = F.matmul(x[..., :2], matrix.T) + offset
        points = moved if x.shape[-1] == 2 else F.cat([moved, x[..., 2:]], -1)
    boxes = floats(detections.boxes, 4, "boxes")
    if mapping.warp is None:
        return detections._replace(boxes=boxes * np.tile(np.diag(matrix), 2) + np.tile(offset, 2), points=points)
    middle, half = (boxes[..., 2:] + boxes[..., :2]) / 2, (boxes[..., 2:] - boxes[..., :2]) / 2
    middle, half = F.matmul(middle, matrix.T) + offset, F.matmul(half, np.abs(matrix.T))
    return detections._replace(boxes=F.cat([middle - half, middle + half], -1), points=points)


def _affine(mapping: PictureMap) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix (2, 2) and the offset (2,) of a map from a tensor to a picture, as float32."""
    if not isinstance(mapping, PictureMap):
        raise InputError(f"a mapping is that of TextureTransform.mapping(picture_size, shape), not {mapping!r:.80}")
    if mapping.warp is not None and not mapping.warp.is_affine:
        raise InputError("a region with perspective has no map by one matrix: map its points by PictureMap.to_picture")
    origin, across, down = mapping.to_picture(np.array([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]))
    return np.stack([across - origin, down - origin], 1).astype(np.float32), origin.astype(np.float32)


def checked_points(given: Given, dims: Sequence[int] = (2, 3)) -> FunctionalTensor:
    """Return points (..., k, 2 or 3) as float32. Raises InputError."""
    x = floats(given)
    if x.ndim < 2 or (isinstance(x.shape[-1], int) and x.shape[-1] not in dims):
        raise InputError(f"points are (..., k, {' or '.join(map(str, dims))}), not {x.shape}")
    return x
