"""Boxes: non-maximum suppression, and the end of SSD models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import operator
from perframe.ir import Value
from perframe.tensor import DataType


@operator("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def _non_max_suppression(node: LiteRTNode) -> list[Value]:
    """The outputs have room for all boxes that are asked for; the last output counts those that were found."""
    soft = node.operation.code.endswith("V5")
    if soft and node.value(5).any():
        raise NotImplementedError("soft suppression (a sigma that is not 0) is not supported")
    boxes, scores, most = node.x(0), node.x(1), int(node.value(2))
    batch, rows = node("Unsqueeze", boxes, node.ints(0)), node("Unsqueeze", scores, node.ints(0, 1))
    table = _kept(node, batch, rows, most, node.x(3), node.x(4))
    index, filled = _column(node, table, 2), _filled(node, table)
    count = node("ReduceSum", node.cast(filled, DataType.INT32), node.ints(0), keepdims=0)
    chosen = node.cast(_room(node, index, most), DataType.INT32)
    if not soft:
        return [chosen, count]
    zero = node.number(0, scores)
    found = node("Where", filled, node("Gather", scores, index), zero)
    return [chosen, _room(node, found, most), count]


def _kept(node: LiteRTNode, boxes: Value, scores: Value, most: int, overlap: Value, least: Value) -> Value:
    """Return rows of (batch, class, box) for boxes (1, n, 4) and scores (1, classes, n). Empty rows are -1."""
    thresholds = (node("Reshape", name, node.ints(1)) for name in (overlap, least))
    return node("SuppressNonMaxima", boxes, scores, node.ints(most), *thresholds)


def _column(node: LiteRTNode, table: Value, column: int) -> Value:
    """Return a column of a table, with 0 for empty rows."""
    found = node("Gather", table, node.constant(column, np.int64), axis=1)
    return node("Max", found, node.constant(0, np.int64))


def _filled(node: LiteRTNode, table: Value) -> Value:
    first = node("Gather", table, node.constant(0, np.int64), axis=1)
    return node("GreaterOrEqual", first, node.constant(0, np.int64))


def _room(node: LiteRTNode, rows: Value, most: int) -> Value:
    """Return rows with zeros behind them, so that there are as many as were asked for."""
    (count,), rank = node.sizes(rows, 0), node.rank(rows)
    if count >= most:
        return rows
    return node("Pad", rows, node.ints(*(0 for _ in range(rank)), most - count, *(0 for _ in range(rank - 1))))


@operator("TFLite_Detection_PostProcess")
def _detection(node: LiteRTNode) -> list[Value]:
    """Decode boxes that are coded relative to anchors, and keep the best: (y, x, y, x), classes, scores, their number.

    The inputs are codes (1, n, 4), scores (1, n, classes) and anchors (n, 4), as middles and sizes.
    """
    options = _options(node.operation.custom_options)
    most, classes = int(options["max_detections"]), int(options["num_classes"])
    boxes = _decoded(node, options)
    background = node.sizes(node.x(1), 2)[0] - classes
    if background not in (0, 1):
        raise ValueError(f"{classes} classes, and scores for {classes + background}")
    scores = node.x(1)
    if background:
        scores = node("Slice", scores, node.ints(1), node.ints(classes + 1), node.ints(2))
    overlap, least = (node.constant(options[f"nms_{name}_threshold"], np.float32) for name in ("iou", "score"))
    if options.get("use_regular_nms"):
        each = int(options.get("detections_per_class", 100))
        table = _kept(node, boxes, node("Transpose", scores, perm=(0, 2, 1)), each, overlap, least)
    else:
        if int(options.get("max_classes_per_detection", 1)) != 1:
            raise NotImplementedError("more than one class for a detection is not supported")
        best = node("ReduceMax", scores, node.ints(2), keepdims=0)
        table = _kept(node, boxes, node("Unsqueeze", best, node.ints(1)), most, overlap, least)
    return _listed(node, table, boxes, scores, most, bool(options.get("use_regular_nms")))


def _listed(node: LiteRTNode, table: Value, boxes: Value, scores: Value, most: int, by_class: bool) -> list[Value]:
    """Return the outputs for the kept rows, the best first."""
    filled, index = _filled(node, table), _column(node, table, 2)
    rows = node("Gather", node("Squeeze", scores, node.ints(0)), index)  # (kept, classes)
    if by_class:
        kind = _column(node, table, 1)
        found = node(
            "Squeeze", node("GatherElements", rows, node("Unsqueeze", kind, node.ints(1)), axis=1), node.ints(1)
        )
    else:
        kind = node("ArgMax", rows, axis=1, keepdims=0)
        found = node("ReduceMax", rows, node.ints(1), keepdims=0)
    found = node("Where", filled, found, node.number(-1, found))
    (count,) = node.sizes(found, 0)
    found, order = node.several(2, "TopK", found, node.ints(min(most, count)), axis=0)
    has = node("GreaterOrEqual", found, node.number(0, found))
    none = node.number(0, found)
    places = node("Gather", index, order)
    corners = node("Gather", node("Squeeze", boxes, node.ints(0)), places)
    corners = node("Where", node("Unsqueeze", has, node.ints(1)), corners, none)
    kinds = node("Where", has, node.cast(node("Gather", kind, order), DataType.FLOAT32), none)
    found = node("Where", has, found, none)
    number = node("ReduceSum", node.cast(has, DataType.FLOAT32), node.ints(0), keepdims=1)
    batch = node.ints(0)
    return [*(node("Unsqueeze", _room(node, rows, most), batch) for rows in (corners, kinds, found)), number]


def _decoded(node: LiteRTNode, options: Mapping[str, Any]) -> Value:
    """Return boxes (1, n, 4) as (top, left, bottom, right)."""
    codes, anchors = node.x(0), node.x(2)
    scale = node.constant([options[f"{name}_scale"] for name in "yxhw"], np.float32)
    codes = node("Div", codes, scale)
    middle, size = (_half(node, codes, at) for at in (0, 1))
    at, extent = (_half(node, anchors, at) for at in (0, 1))
    center = node("Add", node("Mul", middle, extent), at)
    half = node("Mul", node("Mul", node("Exp", size), extent), node.number(0.5, codes))
    return node("Concat", node("Sub", center, half), node("Add", center, half), axis=-1)


def _half(node: LiteRTNode, value: Value, which: int) -> Value:
    return node("Slice", value, node.ints(2 * which), node.ints(2 * which + 2), node.ints(-1))


def _options(data: bytes) -> Mapping[str, Any]:
    """Return the options of a custom operator, a map in FlexBuffers' format. Raises ValueError."""
    from flatbuffers import flexbuffers

    try:
        entries = flexbuffers.GetRoot(bytearray(data)).AsMap
        return {entry.AsKey: value.Value for entry, value in zip(entries.Keys, entries.Values, strict=True)}
    except Exception as error:  # the reader goes where the bytes send it
        raise ValueError(f"its {len(data)} bytes of options cannot be read: {error}") from None
