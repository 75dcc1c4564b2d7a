"""Checks of a node against the standard: the counts of its inputs and outputs, their types, and its attributes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from perframe.ir.sizes.partial import PartialTensor
from perframe.resources import resource
from perframe.tensor import DataType

if TYPE_CHECKING:
    import onnx

MAX_OPSET = 1000  # far beyond any that there will be
ATTRIBUTE_TYPES = (
    *("UNDEFINED", "FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS"),
    *("SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"),
)
_ELEMENTS = {DataType.FLOAT32: "float", DataType.FLOAT64: "double"}  # ONNX calls all others as we do
TABLE = ("assets", "onnx", "operators.json")  # rows of `row_of`, by operator


class Formal(NamedTuple):
    """An input in a schema. Inputs of one `kind` have one type; a variadic input that is not homogeneous may differ."""

    name: str
    kind: str
    types: frozenset[str]
    required: bool
    homogeneous: bool


class Schema(NamedTuple):
    """The standard's rules of an operator: least and most inputs and outputs, and types of attributes by number."""

    name: str
    domain: str
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    required: tuple[str, ...]
    types: Mapping[str, int]
    formals: tuple[Formal, ...]


def schema_of(op: str, opset: int, domain: str) -> Schema | None:
    """Return the standard's schema of an operator; None if the standard does not know it.

    perframe ships a table of the schemas. The onnx package, if it is newer, knows later opsets.
    """
    return _schema(op, opset, domain, domain not in _table()["opsets"] and "onnx" in sys.modules)


@cache
def _schema(op: str, opset: int, domain: str, is_registered: bool) -> Schema | None:
    """`is_registered`: the program may have registered schemas of the domain with the onnx package."""
    table = _table()
    newest = table["opsets"].get(domain)
    if not is_registered and (newest is None or opset <= newest):
        rows = table["operators"].get(f"{domain}::{op}" if domain else op, [])
        known = [row for row in rows if row[0] <= opset]
        return _of_rows(op, domain, known[-1], rows[-1], table["types"]) if known else None
    found = library_schema(op, opset, domain)
    if found is None:
        return None
    last = library_schema(op, MAX_OPSET, domain)
    return _of_rows(op, domain, row_of(found), row_of(last), None)


def _of_rows(op: str, domain: str, row: list[Any], last: list[Any], types: list[list[str]] | None) -> Schema:
    """Return a row as a schema. The inputs also allow the types of the newest opset: adapters bring operators there."""

    def types_of(formal: list[Any]) -> frozenset[str]:
        return frozenset(formal[2] if types is None else types[formal[2]])

    _, (least_in, most_in, least_out, most_out), attributes, inputs = row
    newer = {formal[0]: types_of(formal) for formal in last[3]} if domain == "" else {}
    return Schema(
        op,
        domain,
        (least_in, most_in),
        (least_out, most_out),
        tuple(name for name, kind in attributes.items() if kind < 0),
        {name: abs(kind) for name, kind in attributes.items()},
        tuple(
            Formal(each[0], each[1], types_of(each) | newer.get(each[0], frozenset()), bool(each[3]), bool(each[4]))
            for each in inputs
        ),
    )


def library_schema(op: str, opset: int, domain: str) -> Any:
    """Return the onnx package's schema of an operator; None if it does not know it."""
    import onnx  # imported late: it takes longer than loading a small model

    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def row_of(schema: Any) -> list[Any]:
    """Return a schema of the onnx package as a row of the table: its opset, counts, attributes and inputs.

    The types of required attributes are negative.
    """
    optional = type(schema).FormalParameterOption.Optional
    inputs = [
        [each.name, each.type_str, sorted(each.types), int(each.option != optional), int(each.is_homogeneous)]
        for each in schema.inputs
    ]
    return [
        schema.since_version,
        [schema.min_input, schema.max_input, schema.min_output, schema.max_output],
        {name: kind.type.value * (-1 if kind.required else 1) for name, kind in sorted(schema.attributes.items())},
        inputs,
    ]


@cache
def _table() -> Any:
    return json.loads(resource(*TABLE).read_text(encoding="utf-8"))


def fault(node: onnx.NodeProto, opset: int, domain: str) -> str:
    """Return the reason why a node is malformed; "" if it is not, or the standard does not know its operator."""
    rules = schema_of(node.op_type, opset, domain)
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
            return f"its attribute {name} is of type {_kind(kind)}, and must be {_kind(rules.types[name])}"
    return ""


def _kind(number: int) -> str:
    return ATTRIBUTE_TYPES[number] if number < len(ATTRIBUTE_TYPES) else str(number)


def misfit(schema: Schema | None, inputs: Sequence[PartialTensor | None]) -> str:
    """Return the reason why inputs do not have the types that an operator takes; "" if they have them.

    ONNX's library writes bodies for some operators without this check, and crashes on wrong types.
    """
    bound: dict[str, str] = {}
    formals = schema.formals if schema is not None else ()
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


def type_name(spec: PartialTensor) -> str:
    """Return a type as ONNX writes it."""
    return _type_name(spec.kind, spec.dtype)


@cache
def _type_name(kind: str, dtype: DataType) -> str:
    outside = {"sequence": "seq({})", "optional": "optional({})"}.get(kind, "{}")
    return outside.format(f"tensor({_ELEMENTS.get(dtype, dtype.name.lower())})")
