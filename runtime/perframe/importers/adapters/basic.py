"""Adapters of elementwise, moving and pooling operators, and of the constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from perframe.importers.adapters import adapter, dtype_of, node_like, to_input
from perframe.importers.onnx_values import data_type
from perframe.tensor import DataType

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node


@adapter("Constant")
def _constant(node: Node, graph: Importer) -> list[Node]:
    (name, value), *_ = node.attributes.items()
    if name in ("value", "sparse_value"):
        array = np.asarray(value)
    elif name in ("value_float", "value_floats"):
        array = np.asarray(value, np.float32)
    elif name in ("value_int", "value_ints"):
        array = np.asarray(value, np.int64)
    elif name in ("value_string", "value_strings"):
        array = np.asarray(value, object)
    else:
        raise NotImplementedError(f"a Constant by {name!r} is not supported")
    graph.define(node.outputs[0], array)
    return []


@adapter("Clip", before=11)
def _clip(node: Node, graph: Importer) -> None:
    for name, position in (("min", 1), ("max", 2)):
        to_input(node, graph, name, position, dtype_of(node, graph))


@adapter("Upsample")
def _upsample(node: Node, graph: Importer) -> list[Node]:
    scales = node.inputs[1] if len(node.inputs) > 1 else graph.constant(node.attributes["scales"], np.float32)
    mode = node.attributes.get("mode", "nearest")
    return [_old_resize(node, [node.inputs[0], "", scales], mode)]


@adapter("Resize", before=11)
def _resize(node: Node, graph: Importer) -> list[Node]:
    return [_old_resize(node, [node.inputs[0], "", node.inputs[1]], node.attributes.get("mode", "nearest"))]


@adapter("Resize")
def _extrapolation(node: Node, graph: Importer) -> list[Node] | None:
    """Replace the 0 that our layer gives outside a crop; a resized tensor of ones shows where that is."""
    value = node.attributes.pop("extrapolation_value", 0.0)
    if not value or node.attributes.get("coordinate_transformation_mode") != "tf_crop_and_resize":
        return None
    x, rest = node.inputs[0], node.inputs[1:]
    shape, ones, weights, inside, resized = (graph.value_name(node.outputs[0]) for _ in range(5))
    outside, half = graph.constant(value, dtype_of(node, graph)), graph.constant(0.5, np.float32)
    return [
        node_like(node, "Shape", [x], [shape]),
        node_like(node, "ConstantOfShape", [shape], [ones], value=np.ones(1, np.float32)),
        node_like(node, "Resize", [ones, *rest], [weights], **node.attributes),
        node_like(node, "Greater", [weights, half], [inside]),
        node_like(node, "Resize", [x, *rest], [resized], **node.attributes),
        node_like(node, "Where", [inside, resized, outside], node.outputs),
    ]


def _old_resize(node: Node, inputs: list[str], mode: str) -> Node:
    rounding = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return node_like(node, "Resize", inputs, node.outputs, mode=mode, **rounding)


@adapter("Softmax", "LogSoftmax", "Hardmax", before=13)
def _softmax(node: Node, graph: Importer) -> list[Node]:
    """Before opset 13 all axes from `axis` on counted as one."""
    axis = node.attributes.get("axis", 1)
    shape = graph.specs[node.inputs[0]].shape
    if shape is not None and axis in (-1, len(shape) - 1):
        return [node_like(node, node.op, node.inputs, node.outputs, axis=-1)]
    old, flat, done = (graph.value_name(node.outputs[0]) for _ in range(3))
    return [
        node_like(node, "Shape", node.inputs, [old]),
        node_like(node, "Flatten", node.inputs, [flat], axis=axis),
        node_like(node, node.op, [flat], [done], axis=1),
        node_like(node, "Reshape", [done, old], node.outputs),
    ]


@adapter("Squeeze", "Unsqueeze", before=13)
def _axes(node: Node, graph: Importer) -> None:
    to_input(node, graph, "axes", 1)


@adapter(
    *(
        f"Reduce{kind}"
        for kind in ("Max", "Min", "Mean", "Prod", "SumSquare", "L1", "L2", "LogSum", "LogSumExp", "Sum")
    ),
    before=18,
)
def _reduce_axes(node: Node, graph: Importer) -> None:
    to_input(node, graph, "axes", 1)


@adapter("Slice", before=10)
def _slice(node: Node, graph: Importer) -> None:
    for position, name in enumerate(("starts", "ends", "axes"), 1):
        to_input(node, graph, name, position)


@adapter("Pad", before=11)
def _pad(node: Node, graph: Importer) -> None:
    if "paddings" in node.attributes:
        node.attributes["pads"] = node.attributes.pop("paddings")
    to_input(node, graph, "pads", 1)
    to_input(node, graph, "value", 2, dtype_of(node, graph))


@adapter("Split")
def _split(node: Node, graph: Importer) -> None:
    to_input(node, graph, "split", 1)
    node.attributes["num_outputs"] = len(node.outputs)


@adapter("Reshape", before=5)
def _reshape(node: Node, graph: Importer) -> None:
    to_input(node, graph, "shape", 1)


@adapter("Gemm")
def _gemm(node: Node, graph: Importer) -> None:
    node.attributes.pop("broadcast", None)


@adapter("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less", "PRelu", before=7)
def _old_broadcast(node: Node, graph: Importer) -> list[Node] | None:
    """Before opset 7 a second operand was aligned at `axis`, not at the end."""
    axis = node.attributes.pop("axis", 1 if node.op == "PRelu" else None)
    broadcast = node.attributes.pop("broadcast", node.op == "PRelu")
    first, second = (graph.specs[name].shape for name in node.inputs)
    if not broadcast or axis is None or first is None or second is None or len(first) == len(second):
        return None
    trailing = len(first) - len(second) - axis
    if trailing <= 0 or not second:
        return None
    aligned = graph.value_name(node.inputs[1])
    axes = graph.constant(range(len(second), len(second) + trailing), np.int64)
    binary = node_like(node, node.op, [node.inputs[0], aligned], node.outputs, **node.attributes)
    return [node_like(node, "Unsqueeze", [node.inputs[1], axes], [aligned]), binary]


@adapter("Sum", "Max", "Min", "Mean")
def _variadic(node: Node, graph: Importer) -> list[Node] | None:
    """Turn any number of operands into a chain of binary layers."""
    op = {"Sum": "Add", "Mean": "Add"}.get(node.op, node.op)
    if node.op == op and len(node.inputs) == 2:
        return None
    if len(node.inputs) == 1:
        return [node_like(node, "Identity", node.inputs, node.outputs)]
    chain, running = [], node.inputs[0]
    for other in node.inputs[1:]:
        result = graph.value_name(node.outputs[0])
        chain.append(node_like(node, op, [running, other], [result]))
        running = result
    if node.op == "Mean":
        count = graph.constant(len(node.inputs), dtype_of(node, graph))
        chain.append(node_like(node, "Div", [running, count], node.outputs))
    else:
        chain[-1].outputs = node.outputs
    return chain


@adapter("Cast")
def _cast(node: Node, graph: Importer) -> None:
    to = node.attributes["to"]
    if isinstance(to, DataType):
        return
    number = TensorProto.DataType.Value(to) if isinstance(to, str) else int(to)  # opset 1 named the type
    node.attributes["to"] = data_type(number)


@adapter("CastLike")
def _cast_like(node: Node, graph: Importer) -> list[Node]:
    dtype = graph.specs[node.inputs[1]].dtype
    return [node_like(node, "Cast", node.inputs[:1], node.outputs, to=dtype, **node.attributes)]
