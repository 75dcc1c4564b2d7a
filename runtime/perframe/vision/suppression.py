"""Suppression of boxes that overlap a better one, to a fixed number of rows, on the device."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import perframe.functional as F
from perframe.errors import InputError
from perframe.functional.calls import apply_all, function, known_size
from perframe.functional.sizes import size_of
from perframe.functional.tensor import FunctionalTensor
from perframe.vision.detections import Detections, checked_points, each, floats, is_whole, rows_at

_LEAST_WEIGHT = 1e-30  # so that empty rows are 0, and not NaN
_MOST = 1024  # candidates that all backends compare at once


class BestBoxes(NamedTuple):
    """The best boxes in order of decreasing score, in a fixed number of rows. Rows without a box are 0, and come last.

    `boxes` is (count, 4), `scores` (count,), `classes` (count,) or None, `points` (count, k, 2 or 3) or None. `indices`
    (count,) says which of the given boxes each one was, and is -1 in empty rows; `found` is the number of boxes. Both
    are int64. A batch, if there is one, is the first dim of each.
    """

    boxes: FunctionalTensor
    scores: FunctionalTensor
    classes: FunctionalTensor | None
    points: FunctionalTensor | None
    indices: FunctionalTensor
    found: FunctionalTensor


@function
def best_boxes(
    detections: Detections,
    count: int,
    *,
    iou_threshold: float = 0.5,
    score_threshold: float = 0.0,
    blend: bool = False,
    candidates: int = 256,
) -> BestBoxes:
    """Keep the best `count` boxes, and none that overlaps a better one of its class by more than `iou_threshold`.

    The result is that of greedy suppression among the `candidates` best boxes (at most 1,024) whose scores are above
    `score_threshold`; of equal scores the lower index comes first. A score that is NaN never counts. Overlap is the
    common area / the area of both. With `blend` a box and its points are the mean of those that it suppresses and
    itself, weighted by scores, which steadies them from frame to frame; source: Bazarevsky and others, "BlazeFace"
    (2019), and MediaPipe's weighted suppression. For classes that suppress one another pass
    `detections._replace(classes=None)`. Raises InputError.
    """
    _check(count, candidates, iou_threshold, score_threshold)
    boxes, scores = floats(detections.boxes, 4, "boxes"), floats(detections.scores)
    if boxes.ndim not in (2, 3) or scores.ndim != boxes.ndim - 1 or not scores.shape.may_be(boxes.shape[:-1]):
        raise InputError(
            f"boxes are (n, 4) or (batch, n, 4), and scores one a box; not {boxes.shape} and {scores.shape}"
        )
    if boxes.shape[-2] == 0:
        raise InputError("there is no box to choose from: boxes are (n, 4) with n of 1 or more")
    classes = None if detections.classes is None else F.to(F.as_tensor(detections.classes), "int64")
    points = None if detections.points is None else checked_points(detections.points)
    given = Detections(boxes, scores, classes, points)
    if boxes.ndim == 2:
        given = each(given, lambda x: F.unsqueeze(x, 0))
    clean = F.where(given.scores > score_threshold, given.scores, -math.inf)
    many = clean.shape[1]
    top = F.topk(
        clean, min(int(candidates), many) if isinstance(many, int) else F.minimum(int(candidates), size_of(clean, 1))
    )
    best = each(given, lambda x: rows_at(x, top.indices))._replace(scores=top.values)
    settings = {"picks": int(count), "iou_threshold": float(iou_threshold), "score_threshold": float(score_threshold)}
    picks, *owners = apply_all("PickBoxes", (best.boxes, best.scores, best.classes), 2 if blend else 1, **settings)
    filled, at = picks >= 0, F.maximum(picks, 0)

    def taken(x: FunctionalTensor, empty: int = 0) -> FunctionalTensor:
        """Return the rows of the candidates that are picked, and `empty` in the other rows."""
        mask = filled
        for _ in range(x.ndim - 2):
            mask = F.unsqueeze(mask, -1)
        rows: FunctionalTensor = F.where(mask, rows_at(x, at), empty)
        return rows

    kept = each(best, taken)
    if blend:
        kept = _blended(best, owners[0], count)._replace(scores=kept.scores, classes=kept.classes)
    made = BestBoxes(*kept, taken(top.indices, -1), F.sum(F.to(filled, "int64"), -1))
    return made if boxes.ndim == 3 else BestBoxes._make(None if x is None else F.squeeze(x, 0) for x in made)


def _blended(best: Detections, owners: FunctionalTensor, count: int) -> Detections:
    """Return the means of the boxes and the points that belong to each pick, weighted by scores; 0 for empty rows."""
    points = best.points
    numbers = best.boxes if points is None else F.cat([best.boxes, F.flatten(points, 2)], -1)
    numbers = F.where(F.unsqueeze(owners, -1) >= 0, numbers, 0.0)  # numbers of other rows may be infinite
    own = F.eq(F.unsqueeze(owners, 1), np.arange(count)[:, None])
    weights = F.where(own, F.unsqueeze(best.scores, 1), 0.0)
    mean = F.matmul(weights, numbers) / F.maximum(F.sum(weights, -1, keepdim=True), _LEAST_WEIGHT)
    marks = None if points is None else F.unflatten(mean[..., 4:], -1, (-1, known_size(points, 3, "blend")))
    return best._replace(boxes=mean[..., :4], points=marks)


def _check(count: int, candidates: int, iou_threshold: float, score_threshold: float) -> None:
    if not is_whole(count) or count < 1:
        raise InputError(f"count is a number of boxes from 1, not {count!r}")
    if not is_whole(candidates) or not 1 <= candidates <= _MOST:
        raise InputError(f"candidates is a number from 1 to {_MOST}, not {candidates!r}")
    if not 0 <= iou_threshold <= 1:
        raise InputError(f"iou_threshold is a share of 0 to 1, not {iou_threshold!r}")
    if math.isnan(score_threshold):
        raise InputError("score_threshold is NaN, and no score is above it")
