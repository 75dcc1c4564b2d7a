"""From a network's raw outputs to detections: one plain function for each kind of head.

All return `Detections`, with boxes and points in pixels of the network's input, and scores of 0 to 1. A batch dim
stays.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

import perframe.functional as F
from perframe.errors import InputError
from perframe.functional.calls import function, known_size
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.tensor import Array
from perframe.vision.detections import (
    Detections,
    Sides,
    best_class,
    fits,
    floats,
    from_centers,
    rows_at,
    width_and_height,
)

log = logging.getLogger("perframe")


@function
def decode_ssd(
    boxes: Given,
    scores: Given,
    anchors: Array,
    size: Sides,
    *,
    scales: Sequence[float] | None = None,
    exponential: bool = False,
    y_first: bool = False,
    clip: float = 100.0,
) -> Detections:
    """Decode an SSD whose boxes count from anchors: BlazeFace, BlazePalm, BlazePose, MobileNet-SSD.

    `boxes` is (..., n, 4 + 2 k): center x, center y, width, height, and k points; with `y_first` each pair is y, x.
    `scores` are logits, (..., n, classes) or (..., n), limited to ±`clip`. `anchors` is (n, 4), as `ssd_anchors` makes
    them, and `size` the input's width and height. Numbers are divided by `scales` (x, y, width, height), by default the
    input's sides; those of TensorFlow's detectors are (10, 10, 5, 5), with `exponential` sizes and `y_first`. Source:
    MediaPipe's TensorsToDetectionsCalculator. Raises InputError.
    """
    sides = np.array(width_and_height(size))
    by = np.array(scales if scales is not None else (*sides, *sides), float)
    raw, places = floats(boxes), np.asarray(anchors, float)
    numbers = known_size(raw, raw.ndim - 1, "decode_ssd")
    if numbers < 4 or numbers % 2 or raw.ndim < 2:
        raise InputError(f"boxes are (..., n, 4 + 2 k), not {raw.shape}")
    if places.ndim != 2 or places.shape[1] != 4 or not fits(raw.shape[-2], len(places)):
        raise InputError(f"anchors of shape {places.shape} do not fit boxes {raw.shape}: they are (n, 4)")
    if by.shape != (4,) or not (by > 0).all():
        raise InputError(f"scales are four positive numbers, not {scales!r}")
    if y_first:
        raw = F.index_select(raw, -1, np.arange(numbers).reshape(-1, 2)[:, ::-1].reshape(-1))
    middle, extent = places[:, :2] * sides, places[:, 2:] * sides
    pairs, none = (numbers - 4) // 2, np.zeros_like(middle)
    shift = np.concatenate([middle, none, *[middle] * pairs], 1).astype(np.float32)
    steps = [extent / by[:2], extent / by[2:], *[extent / by[:2]] * pairs]
    moved = raw * np.concatenate(steps, 1).astype(np.float32) + shift
    if exponential:
        grown = F.exp(raw[..., 2:4] / by[2:].astype(np.float32)) * extent.astype(np.float32)
        corners = from_centers(F.cat([moved[..., :2], grown], -1))
    else:
        corners = from_centers(moved)
    points = F.unflatten(moved[..., 4:], -1, (pairs, 2)) if pairs else None
    logits = floats(scores)
    logits = logits if logits.ndim == raw.ndim else F.unsqueeze(logits, -1)
    best, classes = best_class(F.sigmoid(F.clip(logits, -clip, clip)))
    return Detections(corners, best, classes, points)


@function
def decode_yolo(output: Given, head: Literal["v5", "v8", "end2end"] = "v8", *, points: int = 0) -> Detections:
    """Decode the output of a YOLO that already counts in pixels of its input, as Ultralytics and others export it.

    | head | shape | of |
    |---|---|---|
    | "v8" | (..., 4 + classes, n): center x, center y, width, height, scores | v8, v9, v11, v12 |
    | "v5" | (..., n, 5 + classes): the same, and the score of any object before those of classes | v5, v6, v7 |
    | "end2end" | (..., n, 6): left, top, right, bottom, score, class | v10, and exports with suppression |

    Of each box the best class counts; a single class gives no `classes`. Models of poses have `points` points of three
    numbers at the end: x, y and visibility. For raw heads see `decode_yolo_heads`. Raises InputError.
    """
    x = floats(output)
    if head not in ("v5", "v8", "end2end") or x.ndim < 2:
        raise InputError(f"head is v5, v8 or end2end, and the output has two dims or more; not {head!r} and {x.shape}")
    axis = -2 if head == "v8" else -1
    first, numbers = {"v8": 4, "v5": 5, "end2end": 4}[head], known_size(x, x.ndim + axis, "decode_yolo")
    classes = 2 if head == "end2end" else numbers - first - 3 * points
    if classes < 1 or points < 0 or (head == "end2end" and numbers != 6 + 3 * points):
        raise InputError(f"{x.shape} does not fit a {head} head with {points} points: a box has {numbers} numbers")

    boxes = x.shape[-1 if head == "v8" else -2]
    if head != "end2end" and isinstance(boxes, int) and classes > boxes:
        _doubt(head, str(tuple(x.shape)), classes, boxes)

    def rows(begin: int, length: int) -> FunctionalTensor:
        """Return some numbers of each box, as (..., n, length)."""
        part = F.narrow(x, axis, begin, length)
        return F.swapaxes(part, -1, -2) if head == "v8" else part

    marks = F.unflatten(rows(numbers - 3 * points, 3 * points), -1, (points, 3)) if points else None
    if head == "end2end":
        return Detections(rows(0, 4), rows(4, 1)[..., 0], F.to(F.round(rows(5, 1)[..., 0]), "int64"), marks)
    best, labels = best_class(F.narrow(x, axis, first, classes), axis)
    return Detections(from_centers(rows(0, 4)), best * x[..., 4] if head == "v5" else best, labels, marks)


@cache
def _doubt(head: str, shape: str, classes: int, boxes: int) -> None:
    log.warning(
        "decode_yolo takes an output %s of a %s head as %d boxes of %d classes: is it another head, or transposed?",
        *(shape, head, boxes, classes),
    )


@function
def decode_yolo_heads(heads: Sequence[Given], anchors: Sequence[Any], size: Sides) -> Detections:
    """Decode the raw heads of a YOLO v5 or v7: logits on grids, with anchors.

    Each head is (batch, a, rows, columns, 5 + classes), or (batch, a * (5 + classes), rows, columns). `anchors` has for
    each head the width and height of its a anchors in pixels (a, 2), and `size` is the input's width and height.
    Source: Ultralytics' YOLOv5. Raises InputError.
    """
    sides, made = np.array(width_and_height(size)), []
    if not len(heads) or len(heads) != len(anchors):
        raise InputError(f"there are {len(heads)} heads and anchors for {len(anchors)}: each head has its own")
    for given, shapes in zip(heads, anchors, strict=True):
        head, boxes = floats(given), np.asarray(shapes, np.float32)
        if boxes.ndim != 2 or boxes.shape[1] != 2:
            raise InputError(f"the anchors of a head are (a, 2), not {boxes.shape}")
        if head.ndim == 4:
            head = F.permute(F.unflatten(head, 1, (len(boxes), -1)), 0, 1, 3, 4, 2)
        if head.ndim != 5 or not fits(head.shape[1], len(boxes)):
            raise InputError(f"a head is (batch, {len(boxes)}, rows, columns, 5 + classes), not {head.shape}")
        rows, columns = (known_size(head, axis, "decode_yolo_heads") for axis in (2, 3))
        stride = (sides / (columns, rows)).astype(np.float32)
        y, x = np.mgrid[:rows, :columns]
        cells = (np.stack([x, y], -1) - 0.5).astype(np.float32)
        shares = F.sigmoid(head)
        middle = (shares[..., :2] * 2 + cells) * stride
        extent = F.square(shares[..., 2:4] * 2) * boxes[:, None, None]
        made.append(F.flatten(F.cat([middle, extent, shares[..., 4:]], -1), 1, 3))
    return decode_yolo(F.cat(made, 1), "v5")


@function
def decode_detr(logits: Given, boxes: Given, size: Sides, *, background: bool = True) -> Detections:
    """Decode a DETR: `logits` (..., n, classes), and `boxes` (..., n, 4) of center x and y, width and height as shares.

    With `background` the last class is "no object", and scores are a softmax (DETR, Conditional DETR). Without, they
    are sigmoids (Deformable DETR, RT-DETR, D-FINE). `size` is the width and height of the input. Source: Carion and
    others, "End-to-End Object Detection with Transformers" (2020). Raises InputError.
    """
    sides, x = np.array(width_and_height(size) * 2, np.float32), floats(logits)
    scores = F.softmax(x, -1)[..., :-1] if background else F.sigmoid(x)
    best, classes = best_class(scores)
    return Detections(from_centers(floats(boxes, 4, "boxes") * sides), best, classes)


@function
def decode_ultraface(scores: Given, boxes: Given, size: Sides, *, priors: Array | None = None) -> Detections:
    """Decode an UltraFace: `scores` (..., n, 2), of which the second is a face's probability, and `boxes` (..., n, 4).

    Most files have boxes of corners, as shares of the input's sides. In others they count from `priors`, those of
    `ultraface_priors(size)`, with the variances 0.1 and 0.2. Source: Linzaer's
    Ultra-Light-Fast-Generic-Face-Detector-1MB. Raises InputError.
    """
    sides = np.array(width_and_height(size) * 2, np.float32)
    found, x = floats(scores, 2, "scores")[..., 1], floats(boxes, 4, "boxes")
    if priors is None:
        return Detections(x * sides, found)
    places = np.asarray(priors, np.float32)
    if places.ndim != 2 or places.shape[1] != 4 or not fits(x.shape[-2], len(places)):
        raise InputError(f"priors of shape {places.shape} do not fit boxes {x.shape}: they are (n, 4)")
    middle = x[..., :2] * (places[:, 2:] * np.float32(0.1)) + places[:, :2]
    extent = F.exp(x[..., 2:] * 0.2) * places[:, 2:]
    return Detections(from_centers(F.cat([middle, extent], -1) * sides), found)


@function
def decode_centernet(
    heat: Given, size: Given, offset: Given | None = None, *, stride: int = 4, count: int = 100
) -> Detections:
    """Decode a CenterNet: the `count` highest peaks of the `heat` (batch, classes, rows, columns), of 0 to 1.

    A peak is a cell that none of its 8 neighbors surpasses, so that no further suppression is needed. `size` and
    `offset` are (batch, 2, rows, columns): x first, in cells of `stride` pixels. Source: Zhou and others, "Objects as
    Points" (2019). Raises InputError.
    """
    x, extent = floats(heat), floats(size)
    if x.ndim != 4 or extent.ndim != 4 or not fits(extent.shape[1], 2):
        raise InputError(
            f"heat is (batch, classes, rows, columns) and size (batch, 2, ...), not {x.shape}, {extent.shape}"
        )
    channels, rows, columns = (known_size(x, axis, "decode_centernet") for axis in (1, 2, 3))
    peaks = F.where(F.eq(F.max_pool2d(x, 3, 1, 1), x), x, 0.0)
    best = F.topk(F.flatten(peaks, 1), min(count, channels * rows * columns))
    cell = F.remainder(best.indices, rows * columns)
    at = F.stack([F.remainder(cell, columns), F.floor_divide(cell, columns)], -1).float()
    middle = at if offset is None else at + _cells(floats(offset), cell)
    boxes = from_centers(F.cat([middle, _cells(extent, cell)], -1) * float(stride))
    classes = F.floor_divide(best.indices, rows * columns) if channels > 1 else None
    return Detections(boxes, best.values, classes)


def _cells(x: FunctionalTensor, index: FunctionalTensor) -> FunctionalTensor:
    """Return the channels of maps (batch, channels, rows, columns) in some cells: (batch, n, channels)."""
    return rows_at(F.swapaxes(F.flatten(x, 2), 1, 2), index)
