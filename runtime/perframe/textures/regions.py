"""Regions of pictures: an upright rectangle, a rotated one, or what a matrix makes of a square."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InputError

Matrix = NDArray[Any]
Numbers = tuple[float, ...]

UPRIGHT, ROTATED, WARPED = 4, 5, 9  # the numbers of each kind of region
_FORMS = (
    "region is x, y, width and height in pixels; or the center's x and y, width, height and an angle in radians; or a "
    "2 x 3 or 3 x 3 matrix from the unit square to pixels"
)


def checked_region(given: Any) -> Numbers:
    """A region as the numbers of one of the kinds. Raises InputError."""
    try:
        numbers = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{_FORMS}; not {given!r:.80}") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"region: all numbers must be finite, not {given!r:.80}")
    if numbers.shape == (2, 3):
        numbers = np.vstack([numbers, (0.0, 0.0, 1.0)])
    if numbers.shape not in ((UPRIGHT,), (ROTATED,), (3, 3), (WARPED,)):
        raise InputError(f"{_FORMS}; not {given!r:.80}")
    flat = tuple(map(float, numbers.ravel()))
    if len(flat) == WARPED:
        _check_matrix(numbers.reshape(3, 3))
        return flat
    width, height = flat[2:4]
    if width <= 0 or height <= 0:
        raise InputError(f"region must have a size, not {width:g} x {height:g}")
    if len(flat) == ROTATED and flat[4] == 0:
        return flat[0] - width / 2, flat[1] - height / 2, width, height
    return flat


def _check_matrix(matrix: Matrix) -> None:
    """Raise InputError for a matrix that turns the unit square into no region."""
    if (matrix @ _CORNERS)[2].min() <= 0:
        raise InputError("region: this matrix puts a corner of the unit square behind the picture")
    if abs(np.linalg.det(matrix)) < 1e-9 * max(1.0, float(np.abs(matrix).max()) ** 2):
        raise InputError("region must have a size, and this matrix makes a line or a point of the unit square")


_CORNERS = np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])


@dataclass(frozen=True)
class Warp:
    """A region that is not upright: a matrix from the unit square to the picture's pixels, row by row."""

    numbers: Numbers

    @classmethod
    def of(cls, region: Numbers) -> Warp | None:
        """The warp of a checked region; None for an upright one."""
        if len(region) == UPRIGHT:
            return None
        if len(region) == WARPED:
            return cls(region)
        x, y, width, height, angle = region
        cos, sin = math.cos(angle), math.sin(angle)
        across, down = (width * cos, width * sin), (-height * sin, height * cos)
        left, top = (center - (a + b) / 2 for center, a, b in zip((x, y), across, down, strict=True))
        return cls((across[0], down[0], left, across[1], down[1], top, 0.0, 0.0, 1.0))

    @cached_property
    def matrix(self) -> Matrix:
        """The matrix, 3 x 3."""
        return np.array(self.numbers).reshape(3, 3)

    @property
    def is_affine(self) -> bool:
        """Whether parallels stay parallel."""
        return self.numbers[6:8] == (0.0, 0.0)

    @property
    def corners(self) -> Matrix:
        """The corners of the region in pixels: x, and y."""
        points = self.matrix @ _CORNERS
        result: Matrix = points[:2] / points[2]
        return result

    @property
    def size(self) -> tuple[float, float]:
        """The region's width and height in pixels: the lengths of its longer sides."""
        (a, b, c, d) = self.corners.T
        return (
            max(float(np.hypot(*(b - a))), float(np.hypot(*(d - c)))),
            max(float(np.hypot(*(c - a))), float(np.hypot(*(d - b)))),
        )

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The upright rectangle around the region: x, y, width and height."""
        low, high = self.corners.min(1), self.corners.max(1)
        return float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1])

    def of_box(self, box: Sequence[float]) -> Matrix:
        """The matrix from a tensor's elements to pixels, where a box (left, top, width, height) is the unit square."""
        left, top, wide, high = box
        to_unit = np.array([[1 / wide, 0, -left / wide], [0, 1 / high, -top / high], [0, 0, 1]])
        result: Matrix = self.matrix @ to_unit
        return result


def apply(matrix: Matrix, points: NDArray[Any]) -> NDArray[Any]:
    """Points of shape (..., 2) by a 3 x 3 matrix."""
    moved = points @ matrix[:, :2].T + matrix[:, 2]
    result: NDArray[Any] = moved[..., :2] / moved[..., 2:]
    return result
