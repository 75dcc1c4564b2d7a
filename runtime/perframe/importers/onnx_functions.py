"""Operators with a body of other operators. The standard gives the body, or the model brings it as a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from perframe.errors import ModelError
from perframe.importers.onnx_schema import library_schema, misfit, schema_of
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass

if TYPE_CHECKING:
    import onnx

Key = tuple[str, str, str]  # domain, name, overload
Free = Callable[[str], str]

MAX_NODES = 50_000  # of all calls of a model together: functions that call others twice grow without bound
BYTES_A_NODE = 4096  # a function's constants count too: this many bytes count like one node


class Calls:
    """The functions that a model brings, and the number of nodes that their calls have made."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._functions: dict[Key, onnx.FunctionProto] = {}
        for function in proto.functions:
            key = (function.domain, function.name, function.overload)
            if key in self._functions:
                raise ModelError(f"the model has function {':'.join(key[:2])} twice")
            self._functions[key] = function
        self._costs: dict[Key, int] = {}
        self._made = 0

    def find(self, node: onnx.NodeProto) -> tuple[Key, onnx.FunctionProto | None]:
        """Return the key of the function that a node calls, and the function, or None if the model has none."""
        key = (node.domain, node.op_type, node.overload)
        return key, self._functions.get(key)

    def count(self, key: Key, function: onnx.FunctionProto) -> None:
        """Count the nodes of a call's body. Raises ModelError if all calls together have too many."""
        if key not in self._costs:
            self._costs[key] = len(function.node) + function.ByteSize() // BYTES_A_NODE
        self._made += self._costs[key]
        if self._made > MAX_NODES:
            raise ModelError(
                f"the model's functions stand for more than {MAX_NODES} nodes: export it without functions"
            )


def standard_body(
    node: onnx.NodeProto, opset: int, inputs: Sequence[PartialTensor | None]
) -> onnx.FunctionProto | None:
    """Return the body that the standard gives an operator of this opset; None if it gives none.

    Some bodies depend on the node's attributes and its inputs' types. Raises ValueError if these do not fit.
    """
    import onnx  # imported late, here and below: only functions need it

    schema = library_schema(node.op_type, opset, node.domain)
    if schema is None:
        return None
    body = onnx.FunctionProto()
    if schema.has_function:
        versions = [version for version in schema.function_opset_versions if version <= opset]
        if versions:
            body.ParseFromString(schema.get_function_with_opset_version(max(versions)))
            return body
    if schema.has_context_dependent_function:
        versions = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
        if versions:
            wrong = misfit(schema_of(node.op_type, opset, node.domain), inputs)
            if wrong:
                raise ValueError(wrong)
            types = [_type(spec).SerializeToString() for spec in inputs]
            try:
                body.ParseFromString(
                    schema.get_context_dependent_function_with_opset_version(
                        max(versions), node.SerializeToString(), types
                    )
                )
            except RuntimeError as error:  # the library writes text, and cannot always parse it
                raise ValueError(f"ONNX's library cannot write its body: {error}") from None
            return body
    return None


def _type(spec: PartialTensor | None) -> onnx.TypeProto:
    import onnx

    if spec is None:
        return onnx.TypeProto()
    element = onnx.helper.np_dtype_to_tensor_dtype(spec.dtype.numpy)
    tensor = onnx.helper.make_tensor_type_proto(element, spec.shape)
    return onnx.helper.make_sequence_type_proto(tensor) if spec.kind == "sequence" else tensor


def defaults(node: onnx.NodeProto, opset: int) -> dict[str, onnx.AttributeProto]:
    """Return the standard's default attributes of an operator."""
    schema = library_schema(node.op_type, opset, node.domain)
    if schema is None:
        return {}
    return {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}


def inline(
    function: onnx.FunctionProto, node: onnx.NodeProto, prefix: str, free: Free, standard: bool, opset: int
) -> list[onnx.NodeProto]:
    """Return the nodes that replace a call. Inner values get free names, and attributes of the call are filled in.

    A `standard` body may hold a graph of the calling node; that graph reads values of the caller. Raises ValueError if
    the call has more inputs or outputs than the function.
    """
    from onnx import helper

    for what, formal, actual in (("input", function.input, node.input), ("output", function.output, node.output)):
        if len(actual) > len(formal):
            raise ValueError(f"the function has {len(formal)} {what}(s), and the call {len(actual)}")
    names = dict(zip(function.input, node.input, strict=False))
    names |= {formal: "" for formal in function.input[len(node.input) :]}
    handed = list[tuple[str, str]]()  # outputs that another name of the caller has already
    for formal, actual in zip(function.output, node.output, strict=False):
        if formal in names:
            handed.append((names[formal], actual))
        elif actual:
            names[formal] = actual
    given = {attribute.name: attribute for attribute in node.attribute}
    given = {**defaults(node, opset), **{default.name: default for default in function.attribute_proto}, **given}
    scope = _Scope(names, given, prefix, free, standard)
    made = [scope.node(inner) for inner in function.node]
    return made + [
        helper.make_node("Identity", [source], [target], f"{prefix}/{target}") for source, target in handed if target
    ]


@dataclass(frozen=True)
class _Scope:
    """The meaning of names and attributes within a call."""

    names: dict[str, str]
    given: Mapping[str, onnx.AttributeProto]
    prefix: str
    free: Free
    standard: bool

    def _made(self, name: str) -> str:
        if name and name not in self.names:
            self.names[name] = self.free(f"{self.prefix}/{name}")
        return self.names[name] if name else ""

    def _read(self, name: str) -> str:
        return self.names.get(name, name) if self.standard else self._made(name)

    def node(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Return a node of the function as a node of the caller."""
        result = type(node)()
        result.CopyFrom(node)
        result.name = f"{self.prefix}/{node.name or node.op_type}"
        del result.attribute[:], result.input[:], result.output[:]
        result.input.extend(map(self._read, node.input))
        result.output.extend(map(self._made, node.output))
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                added = result.attribute.add()
                added.CopyFrom(attribute)
                for graph in (*([added.g] if added.HasField("g") else []), *added.graphs):
                    self._graph(graph)
            elif attribute.ref_attr_name in self.given:  # else the call leaves it out; its graphs belong to the caller
                added = result.attribute.add()
                added.CopyFrom(self.given[attribute.ref_attr_name])
                added.name = attribute.name
        return result

    def _graph(self, graph: onnx.GraphProto) -> None:
        """Rename a graph in place. Its nodes read values and attributes of the call; its own values get free names."""
        own = [info.name for info in graph.input] + [tensor.name for tensor in graph.initializer]
        own += [tensor.values.name for tensor in graph.sparse_initializer]
        own += [name for node in graph.node for name in node.output if name]
        names = {**self.names, **{name: self.free(f"{self.prefix}/{name}") for name in dict.fromkeys(own)}}
        for info in (*graph.input, *graph.output):
            info.name = names.get(info.name, info.name)
        for tensor in graph.initializer:
            tensor.name = names[tensor.name]
        for sparse in graph.sparse_initializer:
            sparse.values.name = names[sparse.values.name]
        inner = replace(self, names=names)
        renamed = [inner.node(node) for node in graph.node]
        del graph.node[:]
        graph.node.extend(renamed)
