"""Adapters of operators that read or write elements at the indices in another input."""

from __future__ import annotations

from perframe.importers.adapters import adapter
from perframe.importers.onnx_node import Node


@adapter("Scatter")
def _scatter(node: Node) -> list[Node]:
    return [node.like("ScatterElements", node.inputs, node.outputs, **node.attributes)]


@adapter("GridSample", before=20)
def _grid_sample(node: Node) -> None:
    mode = node.attributes.get("mode", "bilinear")
    node.attributes["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)


@adapter("RoiAlign", before=16)
def _roi_align(node: Node) -> None:
    node.attributes["coordinate_transformation_mode"] = "output_half_pixel"
