"""Adapters of elementwise, moving and pooling operators, and of the constants."""

from __future__ import annotations

import numpy as np

from perframe.importers.adapters import adapter, to_input
from perframe.importers.onnx_node import Node, constant
from perframe.importers.onnx_values import data_type
from perframe.ir import Value
from perframe.tensor import DataType


@adapter("Constant")
def _constant(node: Node) -> list[Node]:
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
    if node.outputs[0] is not None:
        node.outputs[0].constant = array
    return []


@adapter("Clip", before=11)
def _clip(node: Node) -> None:
    """From opset 6 to 10 the limits were those of float32 by default, so infinities became finite."""
    largest = float(np.finfo(np.float32).max)
    for name, position, limit in (("min", 1, -largest), ("max", 2, largest)):
        if node.opset >= 6 and np.dtype(node.dtype).itemsize >= 4:  # float16 does not hold them
            node.attributes.setdefault(name, limit)
        to_input(node, name, position, node.dtype)


@adapter("Upsample")
def _upsample(node: Node) -> list[Node]:
    scales = node.inputs[1] if len(node.inputs) > 1 else constant(node.attributes["scales"], np.float32)
    mode = node.attributes.get("mode", "nearest")
    return [_old_resize(node, [node.inputs[0], None, scales], mode)]


@adapter("Resize", before=11)
def _resize(node: Node) -> list[Node]:
    return [_old_resize(node, [node.inputs[0], None, node.inputs[1]], node.attributes.get("mode", "nearest"))]


@adapter("Resize")
def _extrapolation(node: Node) -> list[Node] | None:
    """Replace the 0 that our layer gives outside a crop; a resized tensor of ones shows where that is."""
    value = node.attributes.pop("extrapolation_value", 0.0)
    if not value or node.attributes.get("coordinate_transformation_mode") != "tf_crop_and_resize":
        return None
    x, rest = node.inputs[0], node.inputs[1:]
    shape, ones, weights, inside, resized = (node.fresh() for _ in range(5))
    outside, half = constant(value, node.dtype), constant(0.5, np.float32)
    return [
        node.like("Shape", [x], [shape]),
        node.like("ConstantOfShape", [shape], [ones], value=np.ones(1, np.float32)),
        node.like("Resize", [ones, *rest], [weights], **node.attributes),
        node.like("Greater", [weights, half], [inside]),
        node.like("Resize", [x, *rest], [resized], **node.attributes),
        node.like("Where", [inside, resized, outside], node.outputs),
    ]


def _old_resize(node: Node, inputs: list[Value | None], mode: str) -> Node:
    rounding = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return node.like("Resize", inputs, node.outputs, mode=mode, **rounding)


@adapter("Softmax", "LogSoftmax", "Hardmax", before=13)
def _softmax(node: Node) -> list[Node]:
    """Before opset 13 all axes from `axis` on counted as one."""
    axis = node.attributes.get("axis", 1)
    shape = node.input(0).spec.shape
    if shape is not None and axis in (-1, len(shape) - 1):
        return [node.like(node.op, node.inputs, node.outputs, axis=-1)]
    old, flat, done = (node.fresh() for _ in range(3))
    return [
        node.like("Shape", node.inputs, [old]),
        node.like("Flatten", node.inputs, [flat], axis=axis),
        node.like(node.op, [flat], [done], axis=1),
        node.like("Reshape", [done, old], node.outputs),
    ]


@adapter("Squeeze", "Unsqueeze", before=13)
def _axes(node: Node) -> None:
    if node.op == "Squeeze" and not node.attributes.get("axes"):
        node.attributes.pop("axes", None)  # an empty list means all axes of 1, as no list does
    to_input(node, "axes", 1)


@adapter(
    *(
        f"Reduce{kind}"
        for kind in ("Max", "Min", "Mean", "Prod", "SumSquare", "L1", "L2", "LogSum", "LogSumExp", "Sum")
    ),
    before=18,
)
def _reduce_axes(node: Node) -> None:
    to_input(node, "axes", 1)


@adapter("Slice", before=10)
def _slice(node: Node) -> None:
    for position, name in enumerate(("starts", "ends", "axes"), 1):
        to_input(node, name, position)


@adapter("Pad", before=11)
def _pad(node: Node) -> None:
    if "paddings" in node.attributes:
        node.attributes["pads"] = node.attributes.pop("paddings")
    to_input(node, "pads", 1)
    to_input(node, "value", 2, node.dtype)


@adapter("Split")
def _split(node: Node) -> None:
    to_input(node, "split", 1)
    node.attributes["num_outputs"] = len(node.outputs)


@adapter("Reshape", before=5)
def _reshape(node: Node) -> None:
    to_input(node, "shape", 1)


@adapter("Gemm")
def _gemm(node: Node) -> None:
    node.attributes.pop("broadcast", None)


@adapter("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less", "PRelu", before=7)
def _old_broadcast(node: Node) -> list[Node] | None:
    """Before opset 7 a second operand was aligned at `axis`, not at the end."""
    axis = node.attributes.pop("axis", 1 if node.op == "PRelu" else None)
    broadcast = node.attributes.pop("broadcast", node.op == "PRelu")
    first, second = (node.input(index).spec.shape for index in (0, 1))
    if not broadcast or axis is None or first is None or second is None or len(first) == len(second):
        return None
    trailing = len(first) - len(second) - axis
    if trailing <= 0 or not second:
        return None
    aligned = node.fresh()
    axes = constant(range(len(second), len(second) + trailing), np.int64)
    binary = node.like(node.op, [node.inputs[0], aligned], node.outputs, **node.attributes)
    return [node.like("Unsqueeze", [node.inputs[1], axes], [aligned]), binary]


@adapter("Sum", "Max", "Min", "Mean")
def _variadic(node: Node) -> list[Node] | None:
    """Turn any number of operands into a chain of binary layers."""
    op = {"Sum": "Add", "Mean": "Add"}.get(node.op, node.op)
    if node.op == op and len(node.inputs) == 2:
        return None
    if len(node.inputs) == 1:
        return [node.like("Identity", node.inputs, node.outputs)]
    chain, running = [], node.inputs[0]
    for other in node.inputs[1:]:
        result = node.fresh()
        chain.append(node.like(op, [running, other], [result]))
        running = result
    if node.op == "Mean":
        count = constant(len(node.inputs), node.dtype)
        chain.append(node.like("Div", [running, count], node.outputs))
    else:
        chain[-1].outputs = node.outputs
    return chain


@adapter("Cast")
def _cast(node: Node) -> None:
    to = node.attributes["to"]
    if isinstance(to, DataType):
        return
    if isinstance(to, str):  # opset 1 named the type
        from onnx import TensorProto  # imported late: files of opset 1 are rare

        to = TensorProto.DataType.Value(to)
    node.attributes["to"] = data_type(int(to))


@adapter("CastLike")
def _cast_like(node: Node) -> list[Node]:
    dtype = node.input(1).spec.dtype
    return [node.like("Cast", node.inputs[:1], node.outputs, to=dtype, **node.attributes)]
