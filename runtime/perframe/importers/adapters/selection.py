"""Adapters of selections, normalizations and training modes, and of attributes that are ONNX's numbers of dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from perframe.importers.adapters import adapter, dtype_of, node_like, to_data_types, to_input

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node


@adapter("TopK", before=10)
def _top_k(node: Node, graph: Importer) -> None:
    node.attributes["k"] = [node.attributes["k"]]
    to_input(node, graph, "k", 1)


@adapter("BitCast")
def _bit_cast(node: Node, graph: Importer) -> None:
    to_data_types(node, "to")


@adapter("EyeLike")
def _eye_like(node: Node, graph: Importer) -> None:
    to_data_types(node, "dtype")


@adapter("HannWindow", "HammingWindow", "BlackmanWindow")
def _window(node: Node, graph: Importer) -> None:
    node.attributes.setdefault("output_datatype", TensorProto.FLOAT)
    to_data_types(node, "output_datatype")


@adapter("LayerNormalization", "RMSNormalization", "GroupNormalization")
def _stash_type(node: Node, graph: Importer) -> None:
    to_data_types(node, "stash_type")


@adapter("LpNormalization")
def _lp_normalization(node: Node, graph: Importer) -> list[Node]:
    """Divide x by its norm; a norm of 0 counts as 1."""
    p = node.attributes.get("p", 2)
    if p not in (1, 2):
        raise NotImplementedError(f"p={p}: LpNormalization knows the norms 1 and 2")
    norm, empty, divisor = (graph.value_name(node.outputs[0]) for _ in range(3))
    zero, one = (graph.constant(value, dtype_of(node, graph)) for value in (0, 1))
    axes = graph.constant([node.attributes.get("axis", -1)], np.int64)
    return [
        node_like(node, f"ReduceL{p}", [node.inputs[0], axes], [norm]),
        node_like(node, "Equal", [norm, zero], [empty]),
        node_like(node, "Where", [empty, one, norm], [divisor]),
        node_like(node, "Div", [node.inputs[0], divisor], node.outputs),
    ]


@adapter("MeanVarianceNormalization")
def _mean_variance(node: Node, graph: Importer) -> list[Node]:
    mean, centered, square, variance, deviation, divisor = (graph.value_name(node.outputs[0]) for _ in range(6))
    epsilon = graph.constant(1e-9, dtype_of(node, graph))
    axes = graph.constant(node.attributes.get("axes", (0, 2, 3)), np.int64)
    return [
        node_like(node, "ReduceMean", [node.inputs[0], axes], [mean]),
        node_like(node, "Sub", [node.inputs[0], mean], [centered]),
        node_like(node, "Mul", [centered, centered], [square]),
        node_like(node, "ReduceMean", [square, axes], [variance]),
        node_like(node, "Sqrt", [variance], [deviation]),
        node_like(node, "Add", [deviation, epsilon], [divisor]),
        node_like(node, "Div", [centered, divisor], node.outputs),
    ]


@adapter("Dropout")
def _dropout(node: Node, graph: Importer) -> list[Node] | None:
    """A Dropout that trains, or learns at run time whether it trains, becomes a TrainingDropout."""
    for name in ("ratio", "is_test"):
        node.attributes.pop(name, None)
    says = node.inputs[2] if len(node.inputs) > 2 else ""
    if not says or (says in graph.constants and not graph.constants[says].any()):
        return None
    return [node_like(node, "TrainingDropout", node.inputs, node.outputs, **node.attributes)]


@adapter("BatchNormalization")
def _batch_normalization(node: Node, graph: Importer) -> list[Node] | None:
    training = node.attributes.pop("training_mode", 0)
    momentum = node.attributes.pop("momentum", 0.9)
    node.attributes.pop("is_test", None)
    if training:
        return _training(node, graph, momentum)
    node.outputs = node.outputs[:1]
    return None if node.attributes.pop("spatial", 1) else _per_element(node, graph)


def _training(node: Node, graph: Importer, momentum: float) -> list[Node]:
    """Normalize by the batch's own mean and variance, and move the running mean and variance by them."""
    x, scale, bias, *running = node.inputs
    shape = graph.specs[x].shape
    if shape is None:
        raise NotImplementedError("training_mode=1 needs an input of known rank")
    mean, centered, square, variance = (graph.value_name(node.outputs[0]) for _ in range(4))
    axes = graph.constant([axis for axis in range(len(shape)) if axis != 1], np.int64)
    flat = graph.constant([-1], np.int64)
    statistics = [graph.value_name(node.outputs[0]) for _ in range(2)]
    nodes = [
        node_like(node, "ReduceMean", [x, axes], [mean]),
        node_like(node, "Sub", [x, mean], [centered]),
        node_like(node, "Mul", [centered, centered], [square]),
        node_like(node, "ReduceMean", [square, axes], [variance]),
        node_like(node, "Reshape", [mean, flat], [statistics[0]]),
        node_like(node, "Reshape", [variance, flat], [statistics[1]]),
        node_like(node, "BatchNormalization", [x, scale, bias, *statistics], node.outputs[:1], **node.attributes),
    ]
    for old, now, output in zip(running, statistics, node.outputs[1:], strict=False):
        if output:
            kept, moved = (graph.value_name(output) for _ in range(2))
            keep, move = (graph.constant(factor, graph.specs[old].dtype.numpy) for factor in (momentum, 1 - momentum))
            nodes += [
                node_like(node, "Mul", [old, keep], [kept]),
                node_like(node, "Mul", [now, move], [moved]),
                node_like(node, "Add", [kept, moved], [output]),
            ]
    return nodes


def _per_element(node: Node, graph: Importer) -> list[Node]:
    """Old opsets allow statistics for each element: spatial=0."""
    x, scale, bias, mean, variance = node.inputs
    centered, shifted, deviation, divided, scaled = (graph.value_name(node.outputs[0]) for _ in range(5))
    epsilon = graph.constant(node.attributes.get("epsilon", 1e-5), dtype_of(node, graph))
    return [
        node_like(node, "Sub", [x, mean], [centered]),
        node_like(node, "Add", [variance, epsilon], [shifted]),
        node_like(node, "Sqrt", [shifted], [deviation]),
        node_like(node, "Div", [centered, deviation], [divided]),
        node_like(node, "Mul", [divided, scale], [scaled]),
        node_like(node, "Add", [scaled, bias], node.outputs),
    ]


@adapter("GlobalLpPool")
def _global_lp_pool(node: Node, graph: Importer) -> list[Node]:
    p, shape = node.attributes.get("p", 2), graph.specs[node.inputs[0]].shape
    if shape is None:
        raise NotImplementedError("the rank of its input is unknown")
    axes = graph.constant(range(2, len(shape)), np.int64)
    if p in (1, 2):
        return [node_like(node, f"ReduceL{int(p)}", [node.inputs[0], axes], node.outputs)]
    size, power, total = (graph.value_name(node.outputs[0]) for _ in range(3))
    up, down = (graph.constant(value, dtype_of(node, graph)) for value in (p, 1 / p))
    return [
        node_like(node, "Abs", node.inputs, [size]),
        node_like(node, "Pow", [size, up], [power]),
        node_like(node, "ReduceSum", [power, axes], [total]),
        node_like(node, "Pow", [total, down], node.outputs),
    ]
