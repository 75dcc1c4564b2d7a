"""Adapters of control flow, sequences and optionals."""

from __future__ import annotations

from perframe.importers.adapters import adapter, to_data_types
from perframe.importers.onnx_node import Node


@adapter("Identity")
def _identity(node: Node) -> list[Node] | None:
    """A sequence or an optional becomes a Pass: it has no data that a backend could share."""
    if node.input(0).spec.kind == "tensor":
        return None
    return [node.like("Pass", node.inputs, node.outputs)]


@adapter("SequenceEmpty")
def _sequence_empty(node: Node) -> None:
    to_data_types(node, "dtype")


@adapter("Optional")
def _optional(node: Node) -> None:
    node.attributes.pop("type", None)


@adapter("Scan", before=9)
def _scan(node: Node) -> None:
    """Before opset 9 a Scan ran over a batch, with a length for each row."""
    directions = node.attributes.pop("directions", None)
    if directions is not None:
        node.attributes["scan_input_directions"] = directions
    node.attributes["batched"] = 1
