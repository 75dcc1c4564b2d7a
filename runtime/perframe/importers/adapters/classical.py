"""Adapters of ai.onnx.ml: label encoders, binarizers, feature selection, scalers, tree ensembles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perframe.importers.adapters import adapter, dtype_of, node_like
from perframe.tensor import DataType

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node

# (attribute of the default, its usual value, dtype) for keys that are not found, by the end of the attributes' names
_KINDS: dict[str, tuple[str, Any, Any]] = {
    "strings": ("default_string", "_Unused", object),
    "int64s": ("default_int64", -1, np.int64),
    "floats": ("default_float", -0.0, np.float32),
}


def _list(node: Node, name: str) -> tuple[Any, Any] | None:
    """Return the keys or values of a node as an array, and their default; None if the node has none."""
    tensor = node.attributes.get(f"{name}_tensor")
    if tensor is not None:
        array = np.asarray(tensor)
        usual = {"O": "_Unused", "i": -1}.get(array.dtype.kind, -0.0)
        given = node.attributes.get("default_tensor")
        return array, np.asarray(given if given is not None else np.array([usual]).astype(array.dtype), array.dtype)
    for kind, (default, value, dtype) in _KINDS.items():
        if node.attributes.get(f"{name}_{kind}"):
            array = np.asarray(node.attributes[f"{name}_{kind}"], dtype)
            return array, np.asarray([node.attributes.get(default, value)], dtype)
    return None


@adapter("ai.onnx.ml::LabelEncoder")
def _label_encoder(node: Node, graph: Importer) -> list[Node]:
    keys, values = _list(node, "keys"), _list(node, "values")
    if "classes_strings" in node.attributes:  # opset 1: from strings to their numbers or back, by the input's dtype
        keys = np.asarray(node.attributes["classes_strings"], object), np.array(["_Unused"], object)
        values = np.arange(len(keys[0])), np.array([node.attributes.get("default_int64", -1)], np.int64)
        if graph.specs[node.inputs[0]].dtype is not DataType.STRING:
            keys, values = values, (keys[0], np.array([node.attributes.get("default_string", "_Unused")], object))
    if keys is None or values is None:
        raise NotImplementedError("it has no keys, or no values")
    found = {"keys": keys[0], "values": values[0], "default": values[1]}
    return [node_like(node, "LabelEncoder", node.inputs, node.outputs, **found)]


@adapter("ai.onnx.ml::Binarizer")
def _binarizer(node: Node, graph: Importer) -> list[Node]:
    dtype, above = dtype_of(node, graph), graph.value_name(node.outputs[0])
    threshold = graph.constant(node.attributes.get("threshold", 0.0), dtype)
    return [
        node_like(node, "Greater", [node.inputs[0], threshold], [above]),
        node_like(node, "Cast", [above], node.outputs, to=DataType.of(dtype)),
    ]


@adapter("ai.onnx.ml::ArrayFeatureExtractor")
def _columns(node: Node, graph: Importer) -> list[Node]:
    """Gather columns of the last axis; a single row becomes a matrix of one row."""
    flat, taken = (graph.value_name(node.outputs[0]) for _ in range(2))
    shape = graph.specs[node.inputs[0]].shape
    single = shape is not None and len(shape) == 1
    nodes = [
        node_like(node, "Reshape", [node.inputs[1], graph.constant([-1], np.int64)], [flat]),
        node_like(node, "Gather", [node.inputs[0], flat], [taken] if single else node.outputs, axis=-1),
    ]
    if single:
        nodes.append(node_like(node, "Unsqueeze", [taken, graph.constant([0], np.int64)], node.outputs))
    return nodes


@adapter("ai.onnx.ml::Scaler")
def _scaler(node: Node, graph: Importer) -> list[Node]:
    """The result is float32 for every input dtype."""
    wide, shifted = (graph.value_name(node.outputs[0]) for _ in range(2))
    offset = graph.constant(node.attributes.get("offset", (0.0,)), np.float32)
    scale = graph.constant(node.attributes.get("scale", (1.0,)), np.float32)
    return [
        node_like(node, "Cast", node.inputs, [wide], to=DataType.FLOAT32),
        node_like(node, "Sub", [wide, offset], [shifted]),
        node_like(node, "Mul", [shifted, scale], node.outputs),
    ]


@adapter("ai.onnx.ml::TreeEnsemble")
def _trees(node: Node, graph: Importer) -> list[Node]:
    return [node_like(node, "TreeEnsemble", node.inputs, node.outputs, **node.attributes)]
