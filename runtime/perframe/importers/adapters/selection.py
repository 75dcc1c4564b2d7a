"""Adapters of selections, normalizations and training modes, and of attributes that are ONNX's numbers of dtypes."""

from __future__ import annotations

import numpy as np

from perframe.importers.adapters import adapter, to_data_types, to_input
from perframe.importers.onnx_node import Node, constant
from perframe.importers.onnx_values import FLOAT


@adapter("TopK", before=10)
def _top_k(node: Node) -> None:
    node.attributes["k"] = [node.attributes["k"]]
    to_input(node, "k", 1)


@adapter("BitCast")
def _bit_cast(node: Node) -> None:
    to_data_types(node, "to")


@adapter("EyeLike")
def _eye_like(node: Node) -> None:
    to_data_types(node, "dtype")


@adapter("HannWindow", "HammingWindow", "BlackmanWindow")
def _window(node: Node) -> None:
    node.attributes.setdefault("output_datatype", FLOAT)
    to_data_types(node, "output_datatype")


@adapter("LayerNormalization", "RMSNormalization", "GroupNormalization")
def _stash_type(node: Node) -> None:
    to_data_types(node, "stash_type")


@adapter("LpNormalization")
def _lp_normalization(node: Node) -> list[Node]:
    """Divide x by its norm; a norm of 0 counts as 1."""
    p = node.attributes.get("p", 2)
    if p not in (1, 2):
        raise NotImplementedError(f"p={p}: LpNormalization knows the norms 1 and 2")
    norm, empty, divisor = (node.fresh() for _ in range(3))
    zero, one = (constant(value, node.dtype) for value in (0, 1))
    axes = constant([node.attributes.get("axis", -1)], np.int64)
    return [
        node.like(f"ReduceL{p}", [node.inputs[0], axes], [norm]),
        node.like("Equal", [norm, zero], [empty]),
        node.like("Where", [empty, one, norm], [divisor]),
        node.like("Div", [node.inputs[0], divisor], node.outputs),
    ]


@adapter("MeanVarianceNormalization")
def _mean_variance(node: Node) -> list[Node]:
    mean, centered, square, variance, deviation, divisor = (node.fresh() for _ in range(6))
    epsilon = constant(1e-9, node.dtype)
    axes = constant(node.attributes.get("axes", (0, 2, 3)), np.int64)
    return [
        node.like("ReduceMean", [node.inputs[0], axes], [mean]),
        node.like("Sub", [node.inputs[0], mean], [centered]),
        node.like("Mul", [centered, centered], [square]),
        node.like("ReduceMean", [square, axes], [variance]),
        node.like("Sqrt", [variance], [deviation]),
        node.like("Add", [deviation, epsilon], [divisor]),
        node.like("Div", [centered, divisor], node.outputs),
    ]


@adapter("Dropout")
def _dropout(node: Node) -> list[Node] | None:
    """A Dropout that trains, or learns at run time whether it trains, becomes a TrainingDropout."""
    for name in ("ratio", "is_test"):
        node.attributes.pop(name, None)
    says = node.inputs[2] if len(node.inputs) > 2 else None
    if says is None or (says.constant is not None and not says.constant.any()):
        return None
    return [node.like("TrainingDropout", node.inputs, node.outputs, **node.attributes)]


@adapter("BatchNormalization")
def _batch_normalization(node: Node) -> list[Node] | None:
    training = node.attributes.pop("training_mode", 0)
    momentum = node.attributes.pop("momentum", 0.9)
    node.attributes.pop("is_test", None)
    if training:
        return _training(node, momentum)
    node.outputs = node.outputs[:1]
    return None if node.attributes.pop("spatial", 1) else _per_element(node)


def _training(node: Node, momentum: float) -> list[Node]:
    """Normalize by the batch's own mean and variance, and move the running mean and variance by them."""
    x, scale, bias, *running = node.inputs
    shape = node.input(0).spec.shape
    if shape is None:
        raise NotImplementedError("training_mode=1 needs an input of known rank")
    mean, centered, square, variance = (node.fresh() for _ in range(4))
    axes = constant([axis for axis in range(len(shape)) if axis != 1], np.int64)
    flat = constant([-1], np.int64)
    statistics = [node.fresh() for _ in range(2)]
    nodes = [
        node.like("ReduceMean", [x, axes], [mean]),
        node.like("Sub", [x, mean], [centered]),
        node.like("Mul", [centered, centered], [square]),
        node.like("ReduceMean", [square, axes], [variance]),
        node.like("Reshape", [mean, flat], [statistics[0]]),
        node.like("Reshape", [variance, flat], [statistics[1]]),
        node.like("BatchNormalization", [x, scale, bias, *statistics], node.outputs[:1], **node.attributes),
    ]
    for old, now, output in zip(running, statistics, node.outputs[1:], strict=False):
        if output is not None and old is not None:
            kept, moved = (node.fresh() for _ in range(2))
            keep, move = (constant(factor, old.spec.dtype.numpy) for factor in (momentum, 1 - momentum))
            nodes += [
                node.like("Mul", [old, keep], [kept]),
                node.like("Mul", [now, move], [moved]),
                node.like("Add", [kept, moved], [output]),
            ]
    return nodes


def _per_element(node: Node) -> list[Node]:
    """Old opsets allow statistics for each element: spatial=0."""
    x, scale, bias, mean, variance = node.inputs
    centered, shifted, deviation, divided, scaled = (node.fresh() for _ in range(5))
    epsilon = constant(node.attributes.get("epsilon", 1e-5), node.dtype)
    return [
        node.like("Sub", [x, mean], [centered]),
        node.like("Add", [variance, epsilon], [shifted]),
        node.like("Sqrt", [shifted], [deviation]),
        node.like("Div", [centered, deviation], [divided]),
        node.like("Mul", [divided, scale], [scaled]),
        node.like("Add", [scaled, bias], node.outputs),
    ]


@adapter("GlobalLpPool")
def _global_lp_pool(node: Node) -> list[Node]:
    p, shape = node.attributes.get("p", 2), node.input(0).spec.shape
    if shape is None:
        raise NotImplementedError("the rank of its input is unknown")
    axes = constant(range(2, len(shape)), np.int64)
    if p in (1, 2):
        return [node.like(f"ReduceL{int(p)}", [node.inputs[0], axes], node.outputs)]
    size, power, total = (node.fresh() for _ in range(3))
    up, down = (constant(value, node.dtype) for value in (p, 1 / p))
    return [
        node.like("Abs", node.inputs, [size]),
        node.like("Pow", [size, up], [power]),
        node.like("ReduceSum", [power, axes], [total]),
        node.like("Pow", [total, down], node.outputs),
    ]
