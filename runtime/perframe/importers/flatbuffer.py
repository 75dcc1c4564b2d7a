"""A reader of FlatBuffers in which a file can neither read outside of its bytes nor list more than it holds.

https://flatbuffers.dev/internals describes the encoding: a table begins with the distance to its vtable, which has the
place of each field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import ModelError

_ROOM = 4096  # bytes that a file may list beyond its own size
_SHARED = 4  # how often, on average, tables and vectors may be shared
_FORMATS = {name: struct.Struct("<" + name) for name in "bBhHiIqQf"}


class FlatBuffer:
    """The bytes of a FlatBuffer, and what may still be read of them. `what` begins each error."""

    def __init__(self, data: memoryview, what: str) -> None:
        self.data, self.what = data, what
        self.budget = _SHARED * len(data) + _ROOM

    def root(self) -> TableReader:
        """Return the root table. Raises ModelError."""
        return TableReader(self, self.number("I", 0))

    def number(self, kind: str, at: int) -> Any:
        """Return a number of a kind of `struct`. Raises ModelError if it lies outside."""
        coded = _FORMATS[kind]
        self.spend(coded.size)
        if not 0 <= at <= len(self.data) - coded.size:
            raise self.error(f"a number lies at {at}")
        return coded.unpack_from(self.data, at)[0]

    def spend(self, size: int) -> None:
        """Count bytes that are read. Raises ModelError if a file lists more than a few times its size."""
        self.budget -= size
        if self.budget < 0:
            raise self.error("its tables and vectors list more than that")

    def error(self, reason: str) -> ModelError:
        """Return the error for a damaged file."""
        return ModelError(f"{self.what} is damaged: it has {len(self.data)} bytes, and {reason}; copy it again")


class TableReader:
    """A table of a FlatBuffer. Fields are read by their slots; an absent one has the default."""

    def __init__(self, buffer: FlatBuffer, at: int) -> None:
        self.buffer, self.at = buffer, at
        self._fields = at - buffer.number("i", at)
        self._end = buffer.number("H", self._fields)

    def number(self, slot: int, kind: str, default: float = 0) -> Any:
        """Return a number."""
        at = self._field(slot)
        return self.buffer.number(kind, at) if at else default

    def table(self, slot: int) -> TableReader | None:
        """Return a table; None if there is none."""
        at = self._field(slot)
        return TableReader(self.buffer, at + self.buffer.number("I", at)) if at else None

    def needed(self, slot: int, what: str) -> TableReader:
        """Return a table. Raises ModelError if there is none."""
        found = self.table(slot)
        if found is None:
            raise self.buffer.error(f"{what} is missing")
        return found

    def numbers(self, slot: int, dtype: str) -> NDArray[Any] | None:
        """Return a vector of numbers, over the file's bytes; None if there is none."""
        place = self._vector(slot, np.dtype(dtype).itemsize)
        return None if place is None else np.frombuffer(self.buffer.data, dtype, place[1], place[0])

    def text(self, slot: int) -> str:
        """Return a text; "" if there is none."""
        at = self._field(slot)
        return self._text(at + self.buffer.number("I", at)) if at else ""

    def tables(self, slot: int) -> Iterator[TableReader]:
        """Yield the tables of a vector."""
        return (TableReader(self.buffer, at) for at in self._places(slot))

    def texts(self, slot: int) -> list[str]:
        """Return the texts of a vector."""
        return [self._text(at) for at in self._places(slot)]

    def _field(self, slot: int) -> int:
        entry = 4 + 2 * slot
        if entry + 2 > self._end:
            return 0
        offset: int = self.buffer.number("H", self._fields + entry)
        return self.at + offset if offset else 0

    def _vector(self, slot: int, size: int) -> tuple[int, int] | None:
        """Return the place and the count of a vector's entries."""
        at = self._field(slot)
        if not at:
            return None
        at += self.buffer.number("I", at)
        return at + 4, self._length(at, size)

    def _length(self, at: int, size: int) -> int:
        count: int = self.buffer.number("I", at)
        self.buffer.spend(count * size)
        if at + 4 + count * size > len(self.buffer.data):
            raise self.buffer.error(f"a vector of {count} entries lies at {at}")
        return count

    def _places(self, slot: int) -> list[int]:
        place = self._vector(slot, 4)
        if place is None:
            return []
        begin, count = place
        return [at + self.buffer.number("I", at) for at in range(begin, begin + 4 * count, 4)]

    def _text(self, at: int) -> str:
        count = self._length(at, 1)
        return bytes(self.buffer.data[at + 4 : at + 4 + count]).decode("utf-8", "replace")
