"""Protobuf messages: their fields, without a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MOST_FIELDS = 64  # that are looked at
VARINT, FIXED64, TEXT, FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """A field: its number, its wire type, and its content, or that content's beginning."""

    number: int
    wire: int
    content: bytes


def fields(data: bytes | memoryview, size: int) -> Iterator[Field]:
    """The first fields of a protobuf message that has `size` bytes, of which `data` are the first. Raises ValueError if
    it is not a message. The encoding: https://protobuf.dev/programming-guides/encoding/.
    """
    at = 0
    for _ in range(MOST_FIELDS):
        if at >= min(len(data), size):
            if at > size:
                raise ValueError("a field ends behind the message")
            return
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        begin = at
        if wire == VARINT:
            _, at = varint(data, at)
        elif wire == TEXT:
            length, begin = varint(data, at)
            at = begin + length
        elif wire in (FIXED64, FIXED32):
            at += 8 if wire == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if not number or at > size:
            raise ValueError("a field that ends behind the message")
        yield Field(number, wire, bytes(data[begin:at]))


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number at an index, and the index behind it. Raises ValueError if it is cut."""
    value = 0
    for place in range(10):
        if at >= len(data):
            raise ValueError("it is cut")
        value |= (data[at] & 127) << 7 * place
        at += 1
        if data[at - 1] < 128:
            return value, at
    raise ValueError("a number of more than 64 bits")
