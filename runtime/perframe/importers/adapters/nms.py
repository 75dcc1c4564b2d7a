"""NonMaxSuppression becomes two layers: the number of boxes left depends on data, the work does not (layers/nms.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perframe.importers.adapters import adapter, node_like

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node


@adapter("NonMaxSuppression")
def _non_max_suppression(node: Node, graph: Importer) -> list[Node]:
    """The first layer makes a table with room for all boxes that may be left, and the second drops the empty rows."""
    table = graph.value_name(node.outputs[0])
    return [
        node_like(node, "SuppressNonMaxima", node.inputs, [table], **node.attributes),
        node_like(node, "FilledRows", [table], node.outputs),
    ]
