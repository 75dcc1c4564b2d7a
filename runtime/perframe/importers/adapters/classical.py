"""Adapters of ai.onnx.ml: label encoders, binarizers, feature selection, scalers, tree ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.importers.adapters import adapter
from perframe.importers.onnx_node import Node, constant
from perframe.tensor import DataType

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
def _label_encoder(node: Node) -> list[Node]:
    keys, values = _list(node, "keys"), _list(node, "values")
    if "classes_strings" in node.attributes:  # opset 1: from strings to their numbers or back, by the input's dtype
        keys = np.asarray(node.attributes["classes_strings"], object), np.array(["_Unused"], object)
        values = np.arange(len(keys[0])), np.array([node.attributes.get("default_int64", -1)], np.int64)
        if node.input(0).spec.dtype is not DataType.STRING:
            keys, values = values, (keys[0], np.array([node.attributes.get("default_string", "_Unused")], object))
    if keys is None or values is None:
        raise NotImplementedError("it has no keys, or no values")
    found = {"keys": keys[0], "values": values[0], "default": values[1]}
    return [node.like("LabelEncoder", node.inputs, node.outputs, **found)]


@adapter("ai.onnx.ml::Binarizer")
def _binarizer(node: Node) -> list[Node]:
    dtype, above = node.dtype, node.fresh()
    threshold = constant(node.attributes.get("threshold", 0.0), dtype)
    return [
        node.like("Greater", [node.inputs[0], threshold], [above]),
        node.like("Cast", [above], node.outputs, to=DataType.of(dtype)),
    ]


@adapter("ai.onnx.ml::ArrayFeatureExtractor")
def _columns(node: Node) -> list[Node]:
    """Gather columns of the last axis; a single row becomes a matrix of one row."""
    flat, taken = (node.fresh() for _ in range(2))
    shape = node.input(0).spec.shape
    single = shape is not None and len(shape) == 1
    nodes = [
        node.like("Reshape", [node.inputs[1], constant([-1], np.int64)], [flat]),
        node.like("Gather", [node.inputs[0], flat], [taken] if single else node.outputs, axis=-1),
    ]
    if single:
        nodes.append(node.like("Unsqueeze", [taken, constant([0], np.int64)], node.outputs))
    return nodes


@adapter("ai.onnx.ml::Scaler")
def _scaler(node: Node) -> list[Node]:
    """The result is float32 for every input dtype."""
    wide, shifted = (node.fresh() for _ in range(2))
    offset = constant(node.attributes.get("offset", (0.0,)), np.float32)
    scale = constant(node.attributes.get("scale", (1.0,)), np.float32)
    return [
        node.like("Cast", node.inputs, [wide], to=DataType.FLOAT32),
        node.like("Sub", [wide, offset], [shifted]),
        node.like("Mul", [shifted, scale], node.outputs),
    ]


@adapter("ai.onnx.ml::TreeEnsemble")
def _trees(node: Node) -> list[Node]:
    return [node.like("TreeEnsemble", node.inputs, node.outputs, **node.attributes)]
