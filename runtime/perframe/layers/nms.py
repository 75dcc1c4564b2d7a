"""Boxes of which those that overlap a better one are left out."""

from __future__ import annotations

from perframe.errors import InferenceError
from perframe.layers.base import layer
from perframe.spec import PartialTensor
from perframe.tensor import DataType


@layer(on_host=True)
def NonMaxSuppression(
    boxes: PartialTensor,
    scores: PartialTensor,
    max_output_boxes_per_class: PartialTensor | None = None,
    iou_threshold: PartialTensor | None = None,
    score_threshold: PartialTensor | None = None,
    *,
    center_point_box: int = 0,
) -> PartialTensor:
    if center_point_box not in (0, 1):
        raise InferenceError(f"center_point_box is 0 or 1, not {center_point_box}")
    for value in (boxes, scores):
        if value.shape is not None and len(value.shape) != 3:
            raise InferenceError(f"boxes are (batch, boxes, 4) and scores (batch, classes, boxes), not {value}")
    return boxes.with_shape((None, 3), DataType.INT64)
