"""Non-maximum suppression on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import NMS
from perframe.backends.cpu.kernels.sizes import BOX_BLOCK
from perframe.backends.cpu.lowering.lowering import all_float32, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.nms import Suppression
from perframe.tensor import DataType


def compute(layer: LayerLike, form: Suppression, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Return rows (batch, class, box) of the chosen boxes, class by class and the best first. The other rows of a class
    are -1.
    """
    boxes, scores, _, overlap, least = inputs
    threshold = _number(overlap, np.float32(0))
    table = np.full((form.batch, form.classes, form.picks, 3), -1, np.int64)
    for batch, (corners, classes) in enumerate(zip(boxes, scores, strict=True)):
        edges = _edges(corners, form.centered)
        for index, row in enumerate(classes):
            order = np.argsort(-row, kind="stable")
            order = order[row[order] > _number(least, 0)] if least is not None and least.size else order
            kept = _best(edges, order[~np.isnan(row[order])], form.picks, threshold)
            table[batch, index, : len(kept)] = [(batch, index, box) for box in kept] or -1
    return [table]


def _number(value: Any, missing: Any) -> Any:
    return missing if value is None or not value.size else value.reshape(-1)[0]


def _edges(boxes: Any, centered: bool) -> tuple[Any, Any]:
    """The lower and upper corners of boxes, (boxes, 2) each."""
    if centered:
        half = boxes[:, 2:] / 2
        return boxes[:, :2] - half, boxes[:, :2] + half
    return np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])


def _best(edges: tuple[Any, Any], order: Any, limit: int, threshold: Any) -> list[int]:
    """Choose the best box, drop the boxes that overlap it, and repeat."""
    low, high = edges
    area = np.prod(high - low, axis=1)
    chosen: list[int] = []
    while order.size and len(chosen) < limit:
        best, order = int(order[0]), order[1:]
        chosen.append(best)
        sides = np.minimum(high[best], high[order]) - np.maximum(low[best], low[order])
        common = np.prod(np.maximum(sides, 0), axis=1)
        union = area[best] + area[order] - common
        real = (common > 0) & (union > 0) & (area[order] > 0) & (area[best] > 0)
        order = order[~(real & (common / np.where(real, union, 1) > threshold))]
    return chosen


def lower(
    layer: LayerLike, form: Suppression, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """A native step for float32."""
    boxes, scores, _, overlap, least = inputs
    if boxes is None or scores is None or not all_float32([boxes, scores, overlap, least]):
        return None
    rows, zero = form.batch * form.classes, Operand.stored(np.zeros(1, np.float32))
    overlap, least = (value if value is not None and value.shape.size else None for value in (overlap, least))
    blocks = -(-form.picks // BOX_BLOCK)
    operands = NMS.operands(
        boxes=boxes,
        scores=scores,
        overlap=overlap or zero,
        least=least or zero,
        keys=scratch((rows, form.boxes), DataType.INT64),
        kept=scratch((rows, blocks, 5, BOX_BLOCK), DataType.FLOAT32),
        out=outputs[0],
    )
    numbers = NMS.numbers(
        classes=form.classes,
        box_count=form.boxes,
        picks=form.picks,
        is_centered=int(form.centered),
        has_least=int(least is not None),
    )
    grain = sharing(rows, 64 * rows * form.boxes)  # a box costs some comparisons, and its way through the heap
    return [step(layer, "nms", operands, numbers, rows, grain=grain)]
