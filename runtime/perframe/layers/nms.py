"""Non-maximum suppression: a box that overlaps a better one is left out.

ONNX's NonMaxSuppression becomes two layers, so that a backend need not know how many boxes are left. The first makes a
table with room for all boxes, on the backend that has the boxes. The second, FilledRows, runs on the host and drops the
empty rows. PickBoxes has a fixed number of rows, so that all behind it stays on the backend.
"""

from __future__ import annotations

from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer
from perframe.ir.sizes.partial import Dim, PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Suppression:
    """For each class of each batch at most `picks` of `boxes` stay, the best first.

    Of boxes with equal scores the one with the lower index comes first. A box is a candidate if its score is a number,
    and above the least score if there is one. Of candidates that overlap by more than the threshold (common area / area
    of both) the best stays. A box is two corners, (y, x) each; with `centered` it is middle and size.
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
    """Return rows of (batch, class, box), `picks` for each class of each batch. Empty rows are -1."""
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
    """Return the largest number of boxes that a class can keep; an empty input keeps none."""
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


@dataclass(frozen=True)
class Picking:
    """In each batch at most `picks` of `boxes` in order of decreasing score stay.

    A box is a candidate if its score is above `least`. It belongs to the first pick of its class that it overlaps by
    more than `most` (common area / area of both). Without one it is the next pick, while picks are left. Boxes are two
    corners.
    """

    batch: int
    boxes: int
    picks: int
    most: float
    least: float


@layer()
def PickBoxes(
    boxes: PartialTensor,
    scores: PartialTensor,
    classes: PartialTensor | None = None,
    *,
    picks: int,
    iou_threshold: float = 0.5,
    score_threshold: float = 0.0,
) -> tuple[PartialTensor, PartialTensor]:
    """Return rows (batch, picks) of indices of boxes, and for each box (batch, boxes) the number of its pick.

    Boxes (batch, boxes, 4) come in order of decreasing score (batch, boxes). -1 stands for none.
    """
    if boxes.shape is not None and len(boxes.shape) != 3:
        raise InferenceError(f"boxes are (batch, boxes, 4), not {boxes}")
    for value in (scores, classes):
        if value is not None and value.shape is not None and len(value.shape) != 2:
            raise InferenceError(f"scores and classes are (batch, boxes), not {value}")
    if picks < 1:
        raise InferenceError(f"at least one box is picked, not {picks}")
    if scores.shape is None:
        return boxes.with_shape(None, DataType.INT64), boxes.with_shape(None, DataType.INT64)
    batch, many = scores.shape
    return boxes.with_shape((batch, picks), DataType.INT64), boxes.with_shape((batch, many), DataType.INT64)


@PickBoxes.form
def _pick(
    inputs: Sequence[Known | None],
    outputs: Sequence[Known],
    *,
    picks: int,
    iou_threshold: float,
    score_threshold: float,
) -> Picking:
    boxes, scores, classes = inputs
    assert boxes is not None and scores is not None
    batch, many = scores.shape
    if tuple(boxes.shape) != (batch, many, 4) or (classes is not None and tuple(classes.shape) != (batch, many)):
        raise InferenceError(f"boxes of {boxes.shape} and their classes do not fit scores of {scores.shape}")
    return Picking(batch, many, picks, iou_threshold, score_threshold)
