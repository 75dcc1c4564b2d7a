"""Adapters of operators that read or write where others say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perframe.importers.adapters import adapter, node_like

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node


@adapter("Scatter")
def _scatter(node: Node, graph: Importer) -> list[Node]:
    return [node_like(node, "ScatterElements", node.inputs, node.outputs, **node.attributes)]
