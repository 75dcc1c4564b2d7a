"""A walk over a parsed ONNX file before its import: its graphs, tensors and names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from perframe.errors import ModelError
from perframe.tensor.background import in_turns

if TYPE_CHECKING:
    import onnx

MAX_DEPTH = 64  # of graphs within graphs and calls within calls; protobuf reads at most 32 nested graphs

_TENSOR, _GRAPH, _TENSORS, _GRAPHS, _SPARSE, _SPARSES = 4, 5, 9, 10, 11, 12  # types of attributes


def opsets_of(entries: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Return the opset of each domain."""
    return {entry.domain or "ai.onnx": entry.version for entry in entries}


class Contents:
    """All graphs of a file, the model's own first, and all nodes and attributes, also those of functions.

    Raises ModelError if graphs nest too deeply.
    """

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        self.graphs = [proto.graph]
        self.nodes: list[onnx.NodeProto] = []
        self.attributes = [default for function in proto.functions for default in function.attribute_proto]
        level = [graph for default in self.attributes for graph in _graphs(default)]
        level += self._add(proto.graph.node)
        for function in proto.functions:
            level += self._add(function.node)
        for _ in range(MAX_DEPTH):
            self.graphs += level
            level = [inner for graph in level for inner in self._add(graph.node)]
        if level:
            raise ModelError(f"graphs are nested more than {MAX_DEPTH} deep: no exporter writes this")

    def _add(self, nodes: Iterable[onnx.NodeProto]) -> list[onnx.GraphProto]:
        """Add nodes, and return the graphs that they hold."""
        found: list[onnx.GraphProto] = []
        for node in in_turns(nodes):
            self.nodes.append(node)
            for attribute in node.attribute:
                self.attributes.append(attribute)
                found += _graphs(attribute)
        return found

    def tensors(self) -> Iterator[onnx.TensorProto]:
        """Yield every tensor; the initializers of the model's own graph come first."""
        for graph in self.graphs:
            yield from graph.initializer
            yield from _parts(graph.sparse_initializer)
        for attribute in self.attributes:
            if attribute.type == _TENSOR:
                yield attribute.t
            elif attribute.type == _TENSORS:
                yield from attribute.tensors
            elif attribute.type == _SPARSE:
                yield from _parts([attribute.sparse_tensor])
            elif attribute.type == _SPARSES:
                yield from _parts(attribute.sparse_tensors)

    def names_of_values(self) -> set[str]:
        """Return the names of the values of all graphs. Raises ModelError if any name in the file is not text."""
        found: set[str] = set()
        for graph in self.graphs:
            for infos in (graph.input, graph.output, graph.initializer):
                found.update(info.name for info in infos)
            found.update(sparse.values.name for sparse in graph.sparse_initializer)
            for node in in_turns(graph.node):
                found.update(node.input, node.output)
        for name in (*found, *self._other_names()):
            if not isinstance(name, str):  # protobuf gives bytes that are not UTF-8 as bytes
                raise ModelError(f"the name {name!r} is not text: the file is damaged")
        return found

    def _other_names(self) -> set[str]:
        found = {self.proto.graph.name, *(entry.domain for entry in self.proto.opset_import)}
        for graph in self.graphs:
            for info in (*graph.input, *graph.output):
                found.update(dim.dim_param for dim in info.type.tensor_type.shape.dim)
        for node in in_turns(self.nodes):
            found.update((node.op_type, node.domain, node.name, node.overload))
        for attribute in self.attributes:
            found.update((attribute.name, attribute.ref_attr_name))
        for function in self.proto.functions:
            found.update((function.name, function.domain, function.overload))
            found.update(function.input, function.output, function.attribute)
            found.update(entry.domain for entry in function.opset_import)
            for node in function.node:
                found.update(node.input, node.output)
        return found


def _graphs(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    """Return the graphs that an attribute holds."""
    if attribute.type == _GRAPH:
        return [attribute.g]
    return list(attribute.graphs) if attribute.type == _GRAPHS else []


def _parts(sparse: Iterable[onnx.SparseTensorProto]) -> Iterator[onnx.TensorProto]:
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)
