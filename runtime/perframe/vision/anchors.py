"""Anchors of detectors: the places and sizes from which their boxes count."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perframe.errors import InputError
from perframe.tensor import Array
from perframe.vision.detections import Sides, width_and_height

_PRIOR_STRIDES = (8, 16, 32, 64)  # pixels of a cell of each grid, and the sides of the boxes in it
_PRIOR_SIDES = ((10, 16, 24), (32, 48), (64, 96), (128, 192, 256))
_LOWEST = ((1.0, 2.0, 0.5), 0.1)  # the aspect ratios of a reduced lowest layer, and the scale of the first
_MOST = 10_000_000  # anchors of a grid


def ssd_anchors(
    size: Sides,
    strides: Sequence[int],
    *,
    aspect_ratios: Sequence[float] = (1.0,),
    interpolated_scale_aspect_ratio: float = 1.0,
    fixed_anchor_size: bool = True,
    min_scale: float = 0.1484375,
    max_scale: float = 0.75,
    reduce_boxes_in_lowest_layer: bool = False,
    offset: float = 0.5,
) -> Array:
    """Return the anchors of an SSD (n, 4), float32: center x and y, width and height as shares of the input's sides.

    The names are those of MediaPipe's `SsdAnchorsCalculatorOptions`. `size` is the input's width and height. Strides
    that follow each other and are equal share a grid. Some of MediaPipe's detectors, with their numbers of anchors:

    | detector | size | strides | further | n |
    |---|---|---|---|---|
    | BlazeFace, short range | 128 | (8, 16, 16, 16) | | 896 |
    | BlazeFace, full range | 192 | (4,) | `interpolated_scale_aspect_ratio=0` | 2304 |
    | BlazePalm | 192 | (8, 16, 16, 16) | | 2016 |
    | BlazePose | 224 | (8, 16, 32, 32, 32) | | 2254 |

    Raises InputError for no strides, and for numbers that are not positive.
    """
    width, height = width_and_height(size)
    if not len(strides) or min(strides) <= 0 or min(aspect_ratios, default=1.0) <= 0:
        raise InputError(f"strides and aspect ratios are positive, not {tuple(strides)} and {tuple(aspect_ratios)}")
    scales = np.linspace(min_scale, max_scale, len(strides)) if len(strides) > 1 else [(min_scale + max_scale) / 2]
    grids: list[tuple[int, list[tuple[float, float]]]] = []
    for layer, (stride, scale) in enumerate(zip(strides, map(float, scales), strict=True)):
        following = float(scales[layer + 1]) if layer + 1 < len(strides) else 1.0
        shapes = [(scale, ratio) for ratio in aspect_ratios]
        if layer == 0 and reduce_boxes_in_lowest_layer:
            shapes = list(zip((_LOWEST[1], scale, scale), _LOWEST[0], strict=True))
        elif interpolated_scale_aspect_ratio > 0:
            shapes.append((math.sqrt(scale * following), interpolated_scale_aspect_ratio))
        if not grids or grids[-1][0] != stride:
            grids.append((stride, []))
        grids[-1][1].extend(shapes)
    made = []
    for stride, shapes in grids:
        sides = [(1.0, 1.0) if fixed_anchor_size else (s * math.sqrt(r), s / math.sqrt(r)) for s, r in shapes]
        cells = math.ceil(width / stride), math.ceil(height / stride)
        made.append(_grid(cells, (1 / cells[0], 1 / cells[1]), np.array(sides).reshape(-1, 2), offset))
    return np.concatenate(made).astype(np.float32)


def ultraface_priors(size: Sides) -> Array:
    """Return the priors of an UltraFace (n, 4), float32: center x, center y, width and height as shares of the sides.

    Source: Linzaer's Ultra-Light-Fast-Generic-Face-Detector-1MB. An input of 320 x 240 has 4,420. Raises InputError.
    """
    sides = np.array(width_and_height(size))
    made = []
    for stride, widths in zip(_PRIOR_STRIDES, _PRIOR_SIDES, strict=True):
        columns, rows = np.ceil(sides / stride).astype(int)
        made.append(_grid((columns, rows), tuple(stride / sides), np.array(widths)[:, None] / sides, 0.5))
    priors: Array = np.clip(np.concatenate(made), 0, 1).astype(np.float32)
    return priors


def _grid(cells: tuple[int, int], spacing: tuple[float, float], sides: Array, offset: float) -> Array:
    """Return anchors of these sides (k, 2) in each cell of a grid (columns, rows), row by row: (cells * k, 4)."""
    columns, rows = cells
    if columns * rows * len(sides) > _MOST:
        raise InputError(
            f"a grid of {columns:,} x {rows:,} cells has more than {_MOST:,} anchors: check size and strides"
        )
    y, x = np.mgrid[:rows, :columns] + offset
    middle = np.stack([x, y], -1).reshape(-1, 2) * spacing
    return np.concatenate([np.repeat(middle, len(sides), 0), np.tile(sides, (len(middle), 1))], 1)
