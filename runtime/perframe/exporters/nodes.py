"""Layers as nodes of ONNX: domains, attributes, and the opset in which a node means what its layer does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from perframe.errors import ModelError
from perframe.importers.onnx_schema import fault, library_schema, type_name
from perframe.ir import Layer
from perframe.ir.declaration import ONNX_DOMAINS
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

CLASSICAL = "ai.onnx.ml"
LEAST_OPSET = 21  # what later opsets changed are types and new operators, and not the meaning of old ones
_DOMAINS = {"LabelEncoder": CLASSICAL, "TreeEnsemble": CLASSICAL}  # of layers whose names say no domain
_RENAMED = {"LabelEncoder": {"keys": "keys_tensor", "values": "values_tensor", "default": "default_tensor"}}
_INSTEAD = {"Split": (1, "num_outputs")}  # the index of an input for which an attribute only stands in
_KINDS = onnx.AttributeProto
_FLOAT_MODULO = 28  # the opset from which a remainder of floats may have the sign of the divisor


def operator_of(layer: Layer) -> tuple[str, str]:
    """Return the domain and the name of a layer's operator in ONNX."""
    domain, _, op = layer.op.rpartition("::")
    return domain or _DOMAINS.get(op, ""), op


def node_of(
    layer: Layer, title: str, inputs: Sequence[str], outputs: Sequence[str], bodies: Mapping[str, onnx.GraphProto]
) -> onnx.NodeProto:
    """Return the node of a layer under names of the file; `bodies` are its graphs.

    Raises ModelError for an attribute that ONNX cannot hold.
    """
    domain, op = operator_of(layer)
    schema = _newest_schema(op, domain)
    node = helper.make_node(op, inputs, outputs, name=title, domain=domain)
    renamed, (stands_in, only) = _RENAMED.get(op, {}), _INSTEAD.get(op, (0, ""))
    for name, value in layer.attributes.items():
        if value is None or name in ("bodies", "captures") or (name == only and any(inputs[stands_in:])):
            continue
        said = renamed.get(name, name)
        known = schema.attributes.get(said) if schema is not None else None
        try:
            node.attribute.append(_attribute(said, value, None if known is None else known.type.value))
        except (TypeError, ValueError) as error:
            raise ModelError(f"its attribute {name} cannot be written: {error}") from None
    node.attribute.extend(helper.make_attribute(name, graph) for name, graph in bodies.items())
    return node


def least_outputs(layer: Layer) -> int:
    """The number of outputs that a node must have, whether they are read or not."""
    domain, op = operator_of(layer)
    schema = _newest_schema(op, domain)
    return 0 if schema is None else int(schema.min_output)


def _newest_schema(op: str, domain: str) -> Any:
    version = onnx.defs.onnx_opset_version() if domain in ONNX_DOMAINS else onnx.defs.onnx_ml_opset_version()
    return library_schema(op, version, domain) if domain in (*ONNX_DOMAINS, CLASSICAL) else None


def _attribute(name: str, value: Any, kind: int | None) -> onnx.AttributeProto:
    if isinstance(value, DataType):
        value = element_type(value)
    elif isinstance(value, np.ndarray):
        value = tensor_of(value, "")
    elif kind == _KINDS.FLOAT:
        value = float(value)
    elif kind == _KINDS.FLOATS:
        value = [float(number) for number in value]
    elif isinstance(value, tuple):
        value = list(value)
    return helper.make_attribute(name, value, attr_type=kind)


def least_opset(
    layer: Layer, node: onnx.NodeProto, given: Sequence[PartialTensor | None], made: Sequence[PartialTensor | None]
) -> int:
    """Return the least opset of ONNX, or of the domain, in which a node has these types and attributes.

    Raises ModelError with the reason if there is none.
    """
    domain, op = operator_of(layer)
    if domain not in ("", CLASSICAL):
        return 1
    newest = onnx.defs.onnx_opset_version() if domain == "" else onnx.defs.onnx_ml_opset_version()
    first = LEAST_OPSET if domain == "" else 1
    if op == "Mod" and given[0] is not None and given[0].dtype.is_float and not layer.fmod:
        first = _FLOAT_MODULO
    if op == "Optional" and not node.input:
        raise ModelError("ONNX wants the type of an empty optional, and the model does not keep it")
    reason = "ONNX has no such operator"
    for opset in range(first, newest + 1):
        schema = library_schema(op, opset, domain)
        if schema is None or schema.deprecated:
            continue
        reason = fault(node, opset, domain) or _misfit(schema, node, given, made)
        if not reason:
            return opset
    raise ModelError(reason)


def _misfit(
    schema: Any, node: onnx.NodeProto, given: Sequence[PartialTensor | None], made: Sequence[PartialTensor | None]
) -> str:
    unknown = [attribute.name for attribute in node.attribute if attribute.name not in schema.attributes]
    if unknown:
        return f"ONNX's operator has no attribute {', '.join(unknown)}"
    bound: dict[str, str] = {}
    for what, formals, specs in (("input", schema.inputs, given), ("output", schema.outputs, made)):
        for index, spec in enumerate(specs):
            if spec is None:
                continue
            formal = formals[min(index, len(formals) - 1)]
            kind = type_name(spec)
            if kind not in formal.types:
                return f"its {what} {formal.name} is {kind}, and ONNX's operator takes none"
            if formal.is_homogeneous and bound.setdefault(formal.type_str, kind) != kind:
                return f"its {what} {formal.name} is {kind}, and another is {bound[formal.type_str]}"
    return ""


@cache
def element_type(dtype: DataType) -> int:
    """Return ONNX's number of a dtype."""
    if dtype is DataType.STRING:
        return int(onnx.TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(dtype.numpy))


def tensor_of(array: NDArray[Any], name: str) -> onnx.TensorProto:
    """Return an array as a tensor of ONNX."""
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def value_info(spec: PartialTensor, name: str) -> onnx.ValueInfoProto:
    """Return the declaration of an input or output under a name of the file."""
    shape = None if spec.shape is None else list(spec.shape)
    kind = helper.make_tensor_type_proto(element_type(spec.dtype), shape)
    if spec.kind == "sequence" or (spec.kind == "optional" and spec.element_kind == "sequence"):
        kind = helper.make_sequence_type_proto(kind)
    if spec.kind == "optional":
        kind = helper.make_optional_type_proto(kind)
    return helper.make_value_info(name, kind)
