"""Operators that are functions of others: by a body that the standard gives, or one that the model brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx

from perframe.spec import PartialTensor

Functions = Mapping[tuple[str, str], onnx.FunctionProto]


def local_functions(proto: onnx.ModelProto) -> Functions:
    """The functions that a model brings, by domain and name."""
    return {(function.domain, function.name): function for function in proto.functions}


def standard_body(
    node: onnx.NodeProto, opset: int, inputs: Sequence[PartialTensor | None]
) -> onnx.FunctionProto | None:
    """The body that the standard gives an operator of this opset; None where it gives none.

    Some bodies depend on the node's attributes and its inputs' types.
    """
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    body = onnx.FunctionProto()
    if schema.has_function:
        versions = [version for version in schema.function_opset_versions if version <= opset]
        if versions:
            body.ParseFromString(schema.get_function_with_opset_version(max(versions)))
            return body
    if schema.has_context_dependent_function:
        versions = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
        types = [_type(spec).SerializeToString() for spec in inputs]
        if versions:
            version = max(versions)
            text = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
            body.ParseFromString(text)
            return body
    return None


def _type(spec: PartialTensor | None) -> onnx.TypeProto:
    if spec is None:
        return onnx.TypeProto()
    element = onnx.helper.np_dtype_to_tensor_dtype(spec.dtype.numpy)
    tensor = onnx.helper.make_tensor_type_proto(element, spec.shape)
    return onnx.helper.make_sequence_type_proto(tensor) if spec.kind == "sequence" else tensor


def defaults(node: onnx.NodeProto, opset: int) -> dict[str, onnx.AttributeProto]:
    """The attributes that the standard gives an operator where a node does not."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return {}
    return {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}


def inline(
    function: onnx.FunctionProto, node: onnx.NodeProto, prefix: str, standard: Mapping[str, onnx.AttributeProto]
) -> list[onnx.NodeProto]:
    """The nodes that stand for a call: inner values are named after the call, attributes are filled in."""
    names = dict(zip(function.input, node.input, strict=False))
    names |= {formal: "" for formal in function.input[len(node.input) :]}
    names |= dict(zip(function.output, node.output, strict=False))
    given = {attribute.name: attribute for attribute in node.attribute}
    given = {**standard, **{default.name: default for default in function.attribute_proto}, **given}
    return [_renamed(inner, names, given, prefix) for inner in function.node]


def _renamed(
    node: onnx.NodeProto, names: dict[str, str], given: Mapping[str, onnx.AttributeProto], prefix: str
) -> onnx.NodeProto:
    result = onnx.NodeProto()
    result.CopyFrom(node)
    result.name = f"{prefix}/{node.name or node.op_type}"
    del result.attribute[:], result.input[:], result.output[:]
    result.input.extend(names.get(name, f"{prefix}/{name}") if name else "" for name in node.input)
    for name in node.output:
        result.output.append(names.setdefault(name, f"{prefix}/{name}") if name else "")
    for attribute in _filled(node.attribute, given):
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            _rename_graph(graph, names, given, prefix)
        result.attribute.append(attribute)
    return result


def _filled(
    attributes: Iterable[onnx.AttributeProto], given: Mapping[str, onnx.AttributeProto]
) -> Iterable[onnx.AttributeProto]:
    """Attributes of their own; references to the call's are replaced, or left out where the call has none."""
    for attribute in attributes:
        copy = onnx.AttributeProto()
        if not attribute.ref_attr_name:
            copy.CopyFrom(attribute)
        elif attribute.ref_attr_name in given:
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
        else:
            continue
        yield copy


def _rename_graph(
    graph: onnx.GraphProto, outer: Mapping[str, str], given: Mapping[str, onnx.AttributeProto], prefix: str
) -> None:
    """A subgraph's nodes, too, read the call's values and attributes; its own values keep to themselves."""
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    names = {name: f"{prefix}/{name}" for name in own} | {k: v for k, v in outer.items() if k not in own}
    for info in (*graph.input, *graph.output):
        info.name = names.get(info.name, f"{prefix}/{info.name}")
    for tensor in graph.initializer:
        tensor.name = names[tensor.name]
    for sparse in graph.sparse_initializer:
        sparse.values.name = names[sparse.values.name]
    renamed = [_renamed(node, names, given, prefix) for node in graph.node]
    del graph.node[:]
    graph.node.extend(renamed)
