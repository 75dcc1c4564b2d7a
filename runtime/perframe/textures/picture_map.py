"""The way from a picture's pixels to a tensor's elements, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perframe.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class PictureMap:
    """A region of a picture, and the box of a tensor that it fills, as left, top, width and height.

    Places count from the top left corner of the first pixel or element: the center of the first lies at (0.5, 0.5).
    """

    region: tuple[float, float, float, float]
    box: tuple[int, int, int, int]

    @property
    def scale(self) -> tuple[float, float]:
        """The pixels that an element spans, across and down."""
        return self.region[2] / self.box[2], self.region[3] / self.box[3]

    def to_picture(self, points: ArrayLike) -> Array:
        """Points of the tensor as points of the picture. Shape (..., 2): x and y. Raises InputError."""
        given = _floats(points, 2, "points have x and y")
        result: Array = (given - self.box[:2]) * self.scale + self.region[:2]
        return result

    def to_tensor(self, points: ArrayLike) -> Array:
        """Points of the picture as points of the tensor. Shape (..., 2): x and y. Raises InputError."""
        given = _floats(points, 2, "points have x and y")
        result: Array = (given - self.region[:2]) / self.scale + self.box[:2]
        return result

    def boxes_to_picture(self, boxes: ArrayLike) -> Array:
        """Boxes of the tensor as boxes of the picture. Shape (..., 4): left, top, right and bottom.

        They may reach over the picture's edges. Raises InputError.
        """
        return _corners(self.to_picture, boxes)

    def boxes_to_tensor(self, boxes: ArrayLike) -> Array:
        """Boxes of the picture as boxes of the tensor. Shape (..., 4): left, top, right and bottom.

        Raises InputError.
        """
        return _corners(self.to_tensor, boxes)


def _corners(map_points: Any, boxes: ArrayLike) -> Array:
    given = _floats(boxes, 4, "boxes have left, top, right and bottom")
    result: Array = map_points(given.reshape(*given.shape[:-1], 2, 2)).reshape(given.shape)
    return result


def _floats(values: ArrayLike, last: int, rule: str) -> Array:
    try:
        given = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{rule}, and these are not numbers: {values!r:.80}") from None
    if not given.ndim or given.shape[-1] != last:
        raise InputError(f"{rule}: the last dim is {last}, but the shape is {given.shape}")
    return given
