"""Boxes, points, lines, masks and texts over a picture, drawn by shaders in the application's GL context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perframe.backends import mark_passes
from perframe.errors import InputError
from perframe.graphics import GLContext
from perframe.tensor import BackendType, Tensor
from perframe.textures.arguments import checked_size
from perframe.textures.transform import PictureMap
from perframe.vision.drawing_letters import CELL, Letters

Array = NDArray[Any]
Rows = Tensor | ArrayLike
Color = tuple[float, ...] | Tensor | Array | None

_MOST_HUES = 1024  # the hues of ids begin again
_PALETTE = (-1.0, -1.0, -1.0)


class Overlay:
    """Draws marks over a picture, antialiased, with their numbers from tensors on the GPU or from arrays.

    Coordinates are pixels of a picture, from its top left corner; `size` is the picture's width and height, by default
    those of the area that is drawn into. `target` is a framebuffer or a texture; by default the bound framebuffer,
    within its viewport. Both attributes may change. Lengths such as `width` are pixels of the target.

    - `color` is a tuple of three or four numbers from 0 to 1, or an array or tensor with a row for each mark: (n, 3),
      (n, 4), or ids (n,), each with its own hue. By default the hue of a mark is that of its row.
    - `scores` (n,) hides marks whose score is not above `threshold`. Marks with NaN are not drawn.
    - `mapping` is that of a `TextureTransform`, for coordinates of a network's input: `how.mapping(picture, x)`.

    Tensors on a GPU stay there, and must be of one backend: nothing waits. Those on the CPU are downloaded. The GL
    state stays unchanged. Methods raise InputError, and ClosedError after `release`.
    """

    def __init__(self, ctx: GLContext, size: tuple[int, int] | None = None, target: Any = None) -> None:
        self.size, self.target = size, target
        self._passes = mark_passes(ctx)
        self._letters: Letters | None = None

    def boxes(
        self,
        boxes: Rows,
        *,
        color: Color = None,
        width: float = 2.0,
        scores: Rows | None = None,
        threshold: float = 0.5,
        mapping: PictureMap | None = None,
    ) -> None:
        """Draw the outlines of boxes (n, 4): left, top, right, bottom; or of regions (n, 5) or (n, 2, 3), as those of
        `TextureConverter.crop`.
        """
        given, numbers = _regions("boxes", boxes)
        count = math.prod(given.shape) // numbers
        inputs, params = _shared({"R": given}, count, 1, color, scores, threshold)
        params |= {"numbers": numbers, "width": _length("width", width)}
        self._draw("boxes", inputs, params, count, mapping)

    def points(
        self,
        points: Rows,
        *,
        color: Color = None,
        radius: float = 3.0,
        scores: Rows | None = None,
        threshold: float = 0.5,
        mapping: PictureMap | None = None,
    ) -> None:
        """Draw discs at points (n, 2 or more), or (n, k, 2 or more): x, y, and numbers that do not count.

        In groups of k points, a row of `color` is for a group, and a score for a group or for a point.
        """
        given, numbers, group = _points(points)
        group = group if len(given.shape) > 2 else 1
        count = math.prod(given.shape) // numbers
        inputs, params = _shared({"X": given}, count, group, color, scores, threshold)
        params |= {"numbers": numbers, "radius": _length("radius", radius)}
        self._draw("points", inputs, params, count, mapping)

    def lines(
        self,
        points: Rows,
        pairs: ArrayLike,
        *,
        color: Color = None,
        width: float = 2.0,
        scores: Rows | None = None,
        threshold: float = 0.5,
        mapping: PictureMap | None = None,
    ) -> None:
        """Draw lines between pairs of points: skeletons, outlines. Points are (k, 2 or more) or (n, k, 2 or more).

        `pairs` (p, 2) are indices of points, from 0 to k - 1. A line is hidden with either of its points; the rows of
        `color` and of `scores` are those of `points`.
        """
        given, numbers, group = _points(points)
        try:
            ends = np.asarray(pairs, np.float32).reshape(-1, 2)
        except (TypeError, ValueError):
            raise InputError(f"pairs are (p, 2) indices of points, not {pairs!r:.80}") from None
        if ends.size and not (ends.min() >= 0 and ends.max() < group):
            raise InputError(f"pairs are indices of points from 0 to {group - 1}, not {ends.min():g} to {ends.max():g}")
        count = math.prod(given.shape) // numbers
        inputs, params = _shared({"X": given, "P": ends}, count, group, color, scores, threshold)
        params |= {"numbers": numbers, "points": group, "pairs": len(ends), "width": _length("width", width)}
        self._draw("lines", inputs, params, count // max(group, 1) * len(ends), mapping)

    def masks(
        self,
        masks: Rows,
        *,
        color: Color = None,
        opacity: float = 0.5,
        edge: float | None = None,
        scores: Rows | None = None,
        threshold: float = 0.5,
        mapping: PictureMap | None = None,
    ) -> None:
        """Tint the pixels that masks (h, w) or (..., h, w) cover, where 1 is the whole `opacity`, and 0 none of it.

        With `edge`, a mask covers what is above this number, up to a sharp edge. Masks are stretched over the whole
        picture, or over the region of a `mapping` to their size: `how.mapping(picture, (1, 1, h, w))`.
        """
        given = _numbers("masks", masks)
        if len(given.shape) < 2:
            raise InputError(f"masks are h x w, or n x h x w, not {given.shape}")
        if not (math.isfinite(opacity) and (edge is None or math.isfinite(edge))):
            raise InputError(f"opacity and edge are finite numbers, not {opacity!r} and {edge!r}")
        height, width = map(int, given.shape[-2:])
        box = (0, 0, width, height) if mapping is None else mapping.box
        if box[0] + box[2] > width or box[1] + box[3] > height:
            raise InputError(f"the mapping fills {box}, and masks have {width} x {height}: use that of the masks' size")
        count = math.prod(given.shape[:-2])
        inputs, params = _shared({"X": given}, count, 1, color, scores, threshold, opacity)
        params |= {"extent": (width, height), "box": box, "edge": edge or 0.0, "sharp": int(edge is not None)}
        self._draw("masks", inputs, params, count if height and width else 0, mapping, (width, height))

    def texts(
        self,
        texts: Sequence[str],
        at: Rows,
        *,
        color: Color = None,
        height: float = 16.0,
        scores: Rows | None = None,
        threshold: float = 0.5,
        mapping: PictureMap | None = None,
    ) -> None:
        """Write a line of text above each box, region or point of `at`: (n, 4), (n, 5), (n, 2, 3) or (n, 2).

        `color` is that of the plate; the letters are black or white. They are those of ASCII: accents are left out, and
        "?" stands for others. The first call draws all letters, for some milliseconds.
        """
        given, numbers = _regions("at", at, least=2)
        count = math.prod(given.shape) // numbers
        if isinstance(texts, str) or len(texts) != count or not all(isinstance(text, str) for text in texts):
            raise InputError(f"texts are {count} texts, one for each row of `at`, not {texts!r:.80}")
        if self._letters is None:
            self._letters = Letters()
            self._passes.set_atlas(self._letters.picture)
        letters = self._letters.rows(tuple(texts))
        inputs, params = _shared({"R": given, "G": letters}, count, 1, color, scores, threshold)
        params |= {"numbers": numbers, "height": _length("height", height), "cell": CELL}
        self._draw("texts", inputs, params, len(letters), mapping)

    def _draw(
        self,
        kernel: str,
        inputs: dict[str, Tensor | Array],
        params: dict[str, Any],
        count: int,
        mapping: PictureMap | None,
        mask: tuple[int, int] | None = None,
    ) -> None:
        """Draw `count` marks; a `mask` of this size is mapped the other way round."""
        viewport = self._passes.viewport(self.target)
        if not count or not viewport[2] or not viewport[3]:
            return
        across, down, behind = _matrix(
            mapping, checked_size(self.size) if self.size else viewport[2:], viewport[2:], mask
        )
        params |= {
            "target": viewport[2:],
            "flipped": int(self._passes.is_flipped(self.target)),
            "map_across": across,
            "map_down": down,
            "map_behind": behind,
        }
        self._passes.draw(kernel, inputs, params, count, self.target, viewport)

    def release(self) -> None:
        """Free what the overlay holds on the GPU. Further calls raise ClosedError."""
        self._passes.release()

    def __enter__(self) -> Overlay:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _numbers(name: str, given: Rows) -> Tensor | Array:
    """A tensor on a GPU unchanged, and anything else as an array of float32. Raises InputError."""
    if isinstance(given, Tensor):
        if given.backend_type is not BackendType.CPU:
            return given
        given = given.download_to_array()
    try:
        return np.ascontiguousarray(given, np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{name} are numbers, not {given!r:.80}") from None


def _regions(name: str, given: Rows, least: int = 4) -> tuple[Tensor | Array, int]:
    """Regions, and how many numbers each has. Raises InputError."""
    regions = _numbers(name, given)
    shape = tuple(regions.shape)
    numbers = 6 if len(shape) > 2 and shape[-2:] == (2, 3) else shape[-1] if len(shape) > 1 else 0
    if not least <= numbers <= 6 or (numbers == 6 and shape[-1] == 6):
        forms = "(n, 4): left, top, right, bottom; (n, 5): center, width, height, angle; or (n, 2, 3): matrices"
        raise InputError(f"{name} are {forms}; not {regions.shape}")
    return regions, numbers


def _points(given: Rows) -> tuple[Tensor | Array, int, int]:
    """Points, the numbers of each, and the points of a group. Raises InputError."""
    points = _numbers("points", given)
    if len(points.shape) < 2 or points.shape[-1] < 2:
        raise InputError(f"points are (n, 2 or more) or (n, k, 2 or more), not {points.shape}")
    return points, int(points.shape[-1]), int(points.shape[-2])


def _shared(
    inputs: dict[str, Tensor | Array],
    count: int,
    group: int,
    color: Color,
    scores: Rows | None,
    threshold: float,
    opacity: float = 1.0,
) -> tuple[dict[str, Tensor | Array], dict[str, Any]]:
    """The inputs with scores and colors, and the parameters of all kernels. `count` marks are rows of `group` marks.

    Raises InputError.
    """
    rows = count // max(group, 1)
    params: dict[str, Any] = {"threshold": float(threshold), "scores_each": 1, "tint": (*_PALETTE, opacity)}
    if math.isnan(threshold):
        raise InputError("threshold is a number, not NaN")
    if scores is not None:
        inputs["S"] = values = _numbers("scores", scores)
        each = math.prod(values.shape)
        if each not in (rows, count):
            raise InputError(f"scores are {rows} numbers, one for each row, not {values.shape}")
        params["scores_each"] = count // max(each, 1)
    numbers = 0
    if isinstance(color, tuple):
        if len(color) not in (3, 4) or not all(isinstance(number, (int, float)) for number in color):
            raise InputError(f"a color is three or four numbers from 0 to 1, not {color!r:.80}")
        params["tint"] = (*color[:3], opacity * (color[3] if len(color) > 3 else 1.0))
    elif color is not None:
        if isinstance(color, np.ndarray) and color.ndim == 1 and color.dtype.kind in "iu":
            color = color % _MOST_HUES  # float32 would round large ids
        inputs["C"] = values = _numbers("colors", color)
        numbers = 1 if len(values.shape) == 1 else values.shape[-1]
        if numbers not in (1, 3, 4) or math.prod(values.shape) != rows * numbers:
            raise InputError(f"color is a tuple, or ({rows},), ({rows}, 3) or ({rows}, 4) numbers, not {values.shape}")
    params |= {"color_numbers": numbers, "colors_each": group}
    return inputs, params


def _length(name: str, given: float) -> float:
    if not 0 < given < math.inf:
        raise InputError(f"{name} is a number of pixels above 0, not {given!r}")
    return float(given)


@lru_cache(maxsize=256)
def _matrix(
    mapping: PictureMap | None, size: tuple[int, int], area: tuple[int, int], mask: tuple[int, int] | None
) -> tuple[tuple[float, ...], ...]:
    """The rows of the matrix from marks to pixels of the target, or from those to a mask. Raises InputError."""
    matrix = np.diag((area[0] / size[0], area[1] / size[1], 1.0))
    if mapping is not None:
        matrix = matrix @ mapping.matrix
    elif mask is not None:
        matrix = np.diag((area[0] / mask[0], area[1] / mask[1], 1.0))
    rows = np.linalg.inv(matrix) if mask is not None else matrix
    rows = rows / rows[2, 2] if rows[2, 2] < 0 else rows
    return tuple(tuple(map(float, (*row, 0.0))) for row in rows)
