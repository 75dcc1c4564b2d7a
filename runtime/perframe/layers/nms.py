"""Boxes of which those that overlap a better one are left out.

ONNX's NonMaxSuppression is two layers, so that a backend need not know how many boxes are left: a table with room for
all that may be, made where the boxes are, and what drops the rows that stay empty (FilledRows, on the host).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perframe.errors import InferenceError
from perframe.layers.attributes import Flag
from perframe.layers.base import Known, layer
from perframe.tensor import DataType
from perframe.tensor.partial import Dim, PartialTensor


@dataclass(frozen=True)
class Suppression:
    """For each class of each batch at most `picks` of `boxes`, the best first, of equal ones that with the lower index.

    A box is a candidate if its score is a number above the least, where there is one. Of candidates that overlap by
    more than the threshold (common area / area of both) the best stays. Boxes are two corners, (y, x) each, or
    (`centered`) middle and size.
    """

    batch: int
    classes: int
    boxes: int
    picks: int
    centered: bool


@layer(host=("max_output_boxes_per_class",))
def SuppressNonMaxima(
    boxes: PartialTensor,
    scores: PartialTensor,
    max_output_boxes_per_class: PartialTensor | None = None,
    iou_threshold: PartialTensor | None = None,
    score_threshold: PartialTensor | None = None,
    *,
    center_point_box: Flag = 0,
) -> PartialTensor:
    """Rows of (batch, class, box), `picks` for each class of each batch; those that stay empty are -1."""
    for value in (boxes, scores):
        if value.shape is not None and len(value.shape) != 3:
            raise InferenceError(f"boxes are (batch, boxes, 4) and scores (batch, classes, boxes), not {value}")
    rows: Dim = None
    most = (0,) if max_output_boxes_per_class is None else max_output_boxes_per_class.ints()
    if scores.shape is not None and most is not None:
        batch, classes, count = scores.shape
        picks = _picks(most, count) if isinstance(count, int) else None
        if isinstance(batch, int) and isinstance(classes, int) and picks is not None:
            rows = batch * classes * picks
    return boxes.with_shape((rows, 3), DataType.INT64)


def _picks(most: Sequence[int], boxes: int) -> int:
    """How many boxes of a class there can be; nothing is said by an empty input, and chooses none."""
    return min(max(most[0], 0), boxes) if most else 0


@SuppressNonMaxima.form
def _suppress(inputs: Sequence[Known | None], outputs: Sequence[Known], *, center_point_box: int) -> Suppression:
    boxes, scores = inputs[:2]
    assert boxes is not None and scores is not None
    batch, classes, count = scores.shape
    if tuple(boxes.shape) != (batch, count, 4):
        raise InferenceError(f"boxes of {boxes.shape} do not fit scores of {scores.shape}")
    picks = outputs[0].shape[0] // max(batch * classes, 1)
    return Suppression(batch, classes, count, picks, bool(center_point_box))
