"""Non-maximum suppression on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import NMS, PICK
from perframe.backends.cpu.kernels.sizes import BOX_BLOCK
from perframe.backends.cpu.lowering.lowering import all_float32, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least, at_most
from perframe.layers.nms import Picking, Suppression
from perframe.tensor import DataType

BOXES_OF_CELL, MOST_CELLS = 4 * BOX_BLOCK, 128  # see kernels/nms.py


def compute(
    layer: LayerLike, form: Suppression | Picking, inputs: Sequence[Any], outputs: Sequence[Operand]
) -> list[Any]:
    """Compute with NumPy what the layer declares."""
    return _picks(form, inputs) if isinstance(form, Picking) else _table(form, inputs)


def _table(form: Suppression, inputs: Sequence[Any]) -> list[Any]:
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


def _picks(form: Picking, inputs: Sequence[Any]) -> list[Any]:
    """Return the picks of each batch, and the number of the pick to which each box belongs; -1 for none."""
    boxes, scores, classes = inputs
    picks, owners = (np.full((form.batch, size), -1, np.int64) for size in (form.picks, form.boxes))
    for batch, corners in enumerate(boxes):
        low, high = _edges(corners, False)
        labels = np.zeros(form.boxes, np.int64) if classes is None else classes[batch]
        left = np.flatnonzero(scores[batch] > np.float32(form.least))
        for pick in range(form.picks):
            if not left.size:
                break
            best = left[0]
            met = _overlapping(low, high, best, left, np.float32(form.most)) & (labels[left] == labels[best])
            met[0] = True
            picks[batch, pick], owners[batch, left[met]] = best, pick
            left = left[~met]
    return [picks, owners]


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
    chosen: list[int] = []
    while order.size and len(chosen) < limit:
        best, order = int(order[0]), order[1:]
        chosen.append(best)
        order = order[~_overlapping(*edges, best, order, threshold)]
    return chosen


def _overlapping(low: Any, high: Any, best: int, others: Any, threshold: Any) -> Any:
    """Return which boxes overlap one by more than the threshold."""
    area = np.prod(high - low, axis=1)
    sides = np.minimum(high[best], high[others]) - np.maximum(low[best], low[others])
    common = np.prod(np.maximum(sides, 0), axis=1)
    union = area[best] + area[others] - common
    real = (common > 0) & (union > 0) & (area[others] > 0) & (area[best] > 0)
    return real & (common / np.where(real, union, 1) > threshold)


def lower(
    layer: LayerLike,
    form: Suppression | Picking,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """A native step for float32."""
    if isinstance(form, Picking):
        return _pick_step(layer, form, inputs, outputs, scratch)
    boxes, scores, _, overlap, least = inputs
    if boxes is None or scores is None or not all_float32([boxes, scores, overlap, least]):
        return None
    rows, zero = form.batch * form.classes, Operand.stored(np.zeros(1, np.float32))
    overlap, least = (value if value is not None and value.shape.size else None for value in (overlap, least))
    cells = at_least(at_most(form.picks // BOXES_OF_CELL, MOST_CELLS), 1)
    blocks = -(-form.picks // BOX_BLOCK) + cells
    operands = NMS.operands(
        boxes=boxes,
        scores=scores,
        overlap=overlap or zero,
        least=least or zero,
        keys=scratch((rows, form.boxes), DataType.INT64),
        kept=scratch((rows, blocks, 5, BOX_BLOCK), DataType.FLOAT32),
        highest=scratch((rows, cells), DataType.FLOAT32),
        links=scratch((rows, 2 * cells + blocks), DataType.INT64),
        out=outputs[0],
    )
    numbers = NMS.numbers(
        classes=form.classes,
        box_count=form.boxes,
        picks=form.picks,
        cells=cells,
        is_centered=int(form.centered),
        has_least=int(least is not None),
    )
    grain = sharing(rows, 64 * rows * form.boxes)  # a box costs some comparisons, and its way through the heap
    return [step(layer, "nms", operands, numbers, rows, grain=grain)]


def _pick_step(
    layer: LayerLike, form: Picking, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    boxes, scores, classes = inputs
    is_int64 = classes is None or classes.dtype is DataType.INT64
    if boxes is None or scores is None or not all_float32([boxes, scores]) or not is_int64:
        return None
    operands = PICK.operands(
        boxes=boxes,
        scores=scores,
        classes=classes or scores,
        limits=Operand.stored(np.array([form.most, form.least], np.float32)),
        out=outputs[0],
        owners=outputs[1] if len(outputs) > 1 else scratch((form.batch, form.boxes), DataType.INT64),
    )
    numbers = PICK.numbers(box_count=form.boxes, picks=form.picks, has_classes=int(classes is not None))
    grain = sharing(form.batch, 8 * form.batch * form.boxes * form.picks)  # a comparison of two boxes costs 8 copies
    return [step(layer, "nms.pick", operands, numbers, form.batch, grain=grain)]
