"""Checks of a node against the standard: the counts of its inputs and outputs, their types, and its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import onnx

from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

MAX_OPSET = 1000  # far beyond any that there will be


class OpsetRules(NamedTuple):
    """The least and most inputs and outputs of an operator, its required attributes, and the type of each attribute."""

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    required: tuple[str, ...]
    types: Mapping[str, int]


@cache
def schema_of(op: str, opset: int, domain: str) -> Any:
    """Return the standard's schema of an operator; None if the standard does not know it."""
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


@cache
def _rules(op: str, opset: int, domain: str) -> OpsetRules | None:
    schema = schema_of(op, opset, domain)
    if schema is None:
        return None
    return OpsetRules(
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
        tuple(name for name, attribute in schema.attributes.items() if attribute.required),
        {name: attribute.type.value for name, attribute in schema.attributes.items()},
    )


def fault(node: onnx.NodeProto, opset: int, domain: str) -> str:
    """Return the reason why a node is malformed; "" if it is not, or the standard does not know its operator."""
    rules = _rules(node.op_type, opset, domain)
    if rules is None:
        return ""
    for what, names, (least, most) in (("input", node.input, rules.inputs), ("output", node.output, rules.outputs)):
        if len(names) < least:
            return f"it needs {least} {what}(s), and has {len(names)}"
        if len(names) > most:
            return f"it takes at most {most} {what}(s), and has {len(names)} {what}s"
    if not node.attribute and not rules.required:
        return ""
    present = {attribute.name: attribute.type for attribute in node.attribute}
    if len(present) != len(node.attribute):
        return "it has an attribute twice"
    missing = [name for name in rules.required if name not in present]
    if missing:
        return f"it needs the attribute {', '.join(missing)}"
    for name, kind in present.items():
        if rules.types.get(name, kind) != kind:
            names = onnx.AttributeProto.AttributeType
            return f"its attribute {name} is of type {names.Name(kind)}, and must be {names.Name(rules.types[name])}"
    return ""


def misfit(schema: Any, inputs: Sequence[PartialTensor | None]) -> str:
    """Return the reason why inputs do not have the types that an operator takes; "" if they have them.

    ONNX's library writes bodies for some operators without this check, and crashes on wrong types.
    """
    bound: dict[str, str] = {}
    formals = _formals(schema) if schema is not None else ()
    for index, spec in enumerate(inputs if formals else ()):
        formal = formals[min(index, len(formals) - 1)]
        if spec is None:
            if formal.required:
                return f"its input {formal.name} is missing"
            continue
        kind = type_name(spec)
        if kind not in formal.types:
            return f"its input {formal.name} cannot be {kind}"
        if formal.homogeneous and bound.setdefault(formal.kind, kind) != kind:
            return f"its input {formal.name} is {kind}, and must be {bound[formal.kind]} as another is"
    return ""


class Formal(NamedTuple):
    """An input in a schema. Inputs of one `kind` have one type; a variadic input that is not homogeneous may differ."""

    name: str
    kind: str
    types: frozenset[str]
    required: bool
    homogeneous: bool


@cache
def _formals(schema: Any) -> tuple[Formal, ...]:
    """Return the inputs of a schema. They also allow the types of the newest opset: adapters bring operators there."""
    newest = schema_of(schema.name, onnx.defs.onnx_opset_version(), schema.domain) if schema.domain == "" else None
    newer = {} if newest is None else {formal.name: frozenset(formal.types) for formal in newest.inputs}
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return tuple(
        Formal(
            formal.name,
            formal.type_str,
            frozenset(formal.types) | newer.get(formal.name, frozenset()),
            formal.option != optional,
            formal.is_homogeneous,
        )
        for formal in schema.inputs
    )


def type_name(spec: PartialTensor) -> str:
    """Return a type as ONNX writes it."""
    return _type_name(spec.kind, spec.dtype)


@cache
def _type_name(kind: str, dtype: DataType) -> str:
    outside = {"sequence": "seq({})", "optional": "optional({})"}.get(kind, "{}")
    return outside.format(f"tensor({_element(dtype)})")


def _element(dtype: DataType) -> str:
    if dtype is DataType.STRING:
        return "string"
    return str(onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(dtype.numpy))).lower()
