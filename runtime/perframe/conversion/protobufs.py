"""The fields at the top of a protobuf message, as far as they tell formats apart.

https://protobuf.dev/programming-guides/encoding/ documents the encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_FIELDS = 64  # that are looked at
_VARINT, _FIXED64, _TEXT, _FIXED32 = 0, 1, 2, 5
_OPERATOR = re.compile(rb"[A-Za-z_>][A-Za-z0-9_>./\-]{0,200}")


class Field(NamedTuple):
    """A field: its number, its wire type, and its content, or that content's beginning."""

    number: int
    wire: int
    content: bytes


def fields(data: bytes | memoryview, size: int, most: int = MOST_FIELDS) -> Iterator[Field]:
    """The first fields of a message that has `size` bytes, of which `data` are the first. Raises ValueError if it is
    not a message.
    """
    at = 0
    for _ in range(most):
        if at >= min(len(data), size):
            if at > size:
                raise ValueError("a field ends behind the message")
            return
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        begin = at
        if wire == _VARINT:
            _, at = _varint(data, at)
        elif wire == _TEXT:
            length, begin = _varint(data, at)
            at = begin + length
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if not number or at > size:
            raise ValueError("a field that ends behind the message")
        yield Field(number, wire, bytes(data[begin:at]))


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at >= len(data):
            raise ValueError("it is cut")
        value |= (data[at] & 127) << 7 * place
        at += 1
        if data[at - 1] < 128:
            return value, at
    raise ValueError("a number of more than 64 bits")


def kind_of_message(data: bytes, size: int) -> str | None:
    """ "onnx", "saved_model", "graph" or "meta_graph" for a message of that format; None for any other data."""
    try:
        found = [*fields(data, size)]
    except ValueError:
        return None
    wires = {(field.number, field.wire) for field in found}
    numbers = {field.number for field in found}
    if (7, _TEXT) in wires and wires & {(1, _VARINT), (8, _TEXT)}:
        return "onnx"
    if (1, _VARINT) in wires and (2, _TEXT) in wires and numbers <= {1, 2}:
        return "saved_model"
    if _is_graph(found):
        return "graph"
    graph = next((field.content for field in found if (field.number, field.wire) == (2, _TEXT)), None)
    if graph is not None and numbers <= {1, 2, 3, 4, 5, 6, 7}:
        try:
            inner = [*fields(graph, size)]
        except ValueError:
            return None
        return "meta_graph" if _is_graph(inner) else None
    return None


def _is_graph(found: list[Field]) -> bool:
    """Whether these fields are those of a GraphDef: nodes, and versions or a library behind them."""
    nodes = [field.content for field in found if (field.number, field.wire) == (1, _TEXT)]
    return bool(nodes) and {field.number for field in found} <= {1, 2, 3, 4} and _is_node(nodes[0])


def _is_node(data: bytes) -> bool:
    """Whether a message is a NodeDef: a name and an operator."""
    try:
        texts = {field.number: field.content for field in fields(data, len(data)) if field.wire == _TEXT}
    except ValueError:
        return False
    return bool(texts.get(1)) and _OPERATOR.fullmatch(texts.get(2, b"")) is not None
