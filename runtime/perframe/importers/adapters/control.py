"""Adapters of control flow, sequences and optionals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perframe.importers.adapters import adapter, node_like, to_data_types

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node


@adapter("Identity")
def _identity(node: Node, graph: Importer) -> list[Node] | None:
    """A sequence or an optional becomes a Pass: it has no data that a backend could share."""
    spec = graph.find(node.inputs[0])
    if spec is None or spec.kind == "tensor":
        return None
    return [node_like(node, "Pass", node.inputs, node.outputs)]


@adapter("SequenceEmpty")
def _sequence_empty(node: Node, graph: Importer) -> None:
    to_data_types(node, "dtype")


@adapter("Optional")
def _optional(node: Node, graph: Importer) -> None:
    node.attributes.pop("type", None)


@adapter("Scan", before=9)
def _scan(node: Node, graph: Importer) -> None:
    """Before opset 9 a Scan ran over a batch, with a length for each row."""
    directions = node.attributes.pop("directions", None)
    if directions is not None:
        node.attributes["scan_input_directions"] = directions
    node.attributes["batched"] = 1
