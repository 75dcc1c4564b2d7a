"""NonMaxSuppression becomes two layers: the number of boxes left depends on data, the work does not (layers/nms.py)."""

from __future__ import annotations

from perframe.importers.adapters import adapter
from perframe.importers.onnx_node import Node


@adapter("NonMaxSuppression")
def _non_max_suppression(node: Node) -> list[Node]:
    """The first layer makes a table with room for all boxes that may be left, and the second drops the empty rows."""
    table = node.fresh()
    return [
        node.like("SuppressNonMaxima", node.inputs, [table], **node.attributes),
        node.like("FilledRows", [table], node.outputs),
    ]
