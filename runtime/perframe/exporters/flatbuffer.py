"""A writer of FlatBuffers: https://flatbuffers.dev/internals describes the encoding.

Tables lie before all that they refer to, so that the root is near the beginning.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_ALIGNMENT = 8  # bytes; of the widest number


class Number(NamedTuple):
    """A number of a kind of `struct`. A table leaves out a 0, its default."""

    kind: str
    value: float

    @property
    def coded(self) -> bytes:
        """Its bytes."""
        return struct.pack(f"<{self.kind}", self.value)


class Vector(NamedTuple):
    """Numbers of one kind of `struct`."""

    kind: str
    numbers: Sequence[float] = ()


@dataclass(frozen=True)
class FlatTable:
    """A table: its fields by slot."""

    fields: Mapping[int, Number | Vector | FlatTable | str | list[FlatTable] | list[str]]


def size_prefixed(root: FlatTable) -> bytearray:
    """Return a FlatBuffer behind its size. Raises struct.error for a number that does not fit."""
    writer = _Writer()
    writer.data += bytes(8)
    writer.waiting.append((4, root))
    while writer.waiting:
        at, item = writer.waiting.pop()
        struct.pack_into("<I", writer.data, at, writer.place(item) - at)
    writer.align(4)
    struct.pack_into("<i", writer.data, 0, len(writer.data) - 4)
    return writer.data


class _Writer:
    """The bytes so far. `waiting` has references that are still to be filled, and the items that they refer to."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.waiting: list[tuple[int, object]] = []
        self._layouts: dict[bytes, int] = {}

    def align(self, size: int) -> None:
        """Add zeros up to a multiple of `size`."""
        self.data += bytes(-len(self.data) % size)

    def place(self, item: object) -> int:
        """Write an item, and return its place."""
        match item:
            case FlatTable():
                return self._table(item)
            case str():
                text = item.encode()
                return self._counted(len(text), text + b"\0")
            case Vector(kind, numbers):
                return self._counted(len(numbers), struct.pack(f"<{len(numbers)}{kind}", *numbers))
        assert isinstance(item, list)
        at = self._counted(len(item), bytes(4 * len(item)))
        self.waiting += [(at + 4 + 4 * index, one) for index, one in enumerate(item)]
        return at

    def _counted(self, count: int, content: bytes) -> int:
        self.align(4)
        at = len(self.data)
        self.data += struct.pack("<I", count) + content
        return at

    def _table(self, table: FlatTable) -> int:
        """Write a table, and before it its layout (the vtable), unless an earlier table has the same one."""
        numbers = {slot: one.coded for slot, one in table.fields.items() if isinstance(one, Number)}
        contents = {slot: numbers.get(slot, bytes(4)) for slot in table.fields}
        kept = [slot for slot in table.fields if slot not in numbers or any(numbers[slot])]
        places, end = dict[int, int](), 4
        for slot in sorted(kept, key=lambda slot: -len(contents[slot])):
            size = len(contents[slot])
            places[slot] = end + -end % size
            end = places[slot] + size
        count = max(places, default=-1) + 1
        layout = struct.pack(f"<{count + 2}H", 4 + 2 * count, end, *(places.get(slot, 0) for slot in range(count)))
        if layout not in self._layouts:
            self.align(2)
            self._layouts[layout] = len(self.data)
            self.data += layout
        self.align(_ALIGNMENT if any(len(contents[slot]) == _ALIGNMENT for slot in places) else 4)
        at = len(self.data)
        self.data += struct.pack("<i", at - self._layouts[layout]) + bytes(end - 4)
        for slot, place in places.items():
            self.data[at + place : at + place + len(contents[slot])] = contents[slot]
            if slot not in numbers:
                self.waiting.append((at + place, table.fields[slot]))
        return at
