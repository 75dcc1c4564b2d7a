"""Adapters of operators that read or write elements at the indices in another input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perframe.importers.adapters import adapter, node_like

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node


@adapter("Scatter")
def _scatter(node: Node, graph: Importer) -> list[Node]:
    return [node_like(node, "ScatterElements", node.inputs, node.outputs, **node.attributes)]


@adapter("GridSample", before=20)
def _grid_sample(node: Node, graph: Importer) -> None:
    mode = node.attributes.get("mode", "bilinear")
    node.attributes["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)


@adapter("RoiAlign", before=16)
def _roi_align(node: Node, graph: Importer) -> None:
    node.attributes["coordinate_transformation_mode"] = "output_half_pixel"
