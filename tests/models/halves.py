"""Files of float16, made of files of float32 as converters make them, and their twins of float32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def in_float16(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs, weights, values and outputs of float16. What the standard keeps in float32, such as the
    scales of Resize, stays so.
    """
    made = onnx.shape_inference.infer_shapes(proto)
    graph, opsets = made.graph, {one.domain: one.version for one in made.opset_import}
    values = [*graph.input, *graph.output, *graph.value_info]
    floats = {value.name for value in values if value.type.tensor_type.elem_type == FLOAT}
    floats |= {tensor.name for tensor in graph.initializer if tensor.data_type == FLOAT}
    for tensor in graph.initializer:
        _narrow(tensor)
    for value in values:
        if value.name in floats:
            value.type.tensor_type.elem_type = HALF
    nodes = [one for node in graph.node for one in _nodes(node, opsets, floats)]
    del graph.node[:]
    graph.node.extend(nodes)
    return made


def _nodes(node: NodeProto, opsets: Mapping[str, int], floats: set[str]) -> Iterator[NodeProto]:
    """The node, between casts of what it must read or make in float32."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _narrow(attribute.t)
        if attribute.name in ("to", "dtype") and attribute.i == FLOAT:
            attribute.i = HALF
    schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    after = []
    for index, name in enumerate(node.input):
        if name in floats and _is_float32_only(schema, schema.inputs[min(index, len(schema.inputs) - 1)]):
            node.input[index] = f"{name}:float32 for {node.output[0]}"
            yield helper.make_node("Cast", [name], [node.input[index]], to=FLOAT)
    for index, name in enumerate(node.output):
        if name in floats and _is_float32_only(schema, schema.outputs[min(index, len(schema.outputs) - 1)]):
            node.output[index] = f"{name}:float32"
            after.append(helper.make_node("Cast", [node.output[index]], [name], to=HALF))
    yield node
    yield from after


def _is_float32_only(schema: onnx.defs.OpSchema, formal: onnx.defs.OpSchema.FormalParameter) -> bool:
    types = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
    allowed = types.get(formal.type_str, [formal.type_str])
    return "tensor(float)" in allowed and "tensor(float16)" not in allowed


def _narrow(tensor: TensorProto) -> None:
    if tensor.data_type == FLOAT:
        numbers = numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))


def rounded(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model of float32 with the weights of its float16 file: what that file computes without other roundings."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    tensors = [attribute.t for node in made.graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor in (*made.graph.initializer, *tensors):
        if tensor.data_type == FLOAT:
            numbers = numpy_helper.to_array(tensor).astype(np.float16).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))
    return made
