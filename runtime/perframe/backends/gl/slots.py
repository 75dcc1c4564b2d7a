"""The workspace of backends that allocate each value separately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from perframe.tensor import DataType, Storage


class Allocator(Protocol):
    """The methods of a backend that slots use."""

    def alloc(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """New storage."""

    def capacity(self, shape: Sequence[int], dtype: DataType) -> tuple[str, int]:
        """The class of storage that a value needs, and its size. Any storage of this class that is large enough
        serves.
        """


@dataclass
class _Slot:
    kind: str
    size: int
    storage: Storage

    @property
    def bytes(self) -> int:
        """Its bytes: every dtype takes four bytes an element."""
        return 4 * self.storage.max_capacity


class Slots:
    """A workspace of separate storages. Values whose lifetimes do not meet share one: each takes the smallest free
    storage that is large enough.
    """

    def __init__(self, backend: Allocator) -> None:
        self._backend = backend
        self._free: list[_Slot] = []
        self._taken: dict[int, _Slot] = {}
        self._owned: list[Storage] = []
        self.size = self.used = 0

    def take(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Take storage for a value, until it is given back."""
        kind, size = self._backend.capacity(shape, dtype)
        fitting = [slot for slot in self._free if slot.kind == kind and slot.size >= size]
        if fitting:
            slot = min(fitting, key=lambda slot: slot.size)
            self._free.remove(slot)
        else:
            slot = _Slot(kind, size, self.scratch(shape, dtype))
        self._taken[id(slot.storage)] = slot
        self.used += slot.bytes
        return slot.storage

    def give_back(self, storage: Storage) -> None:
        """Take storage back: nothing reads its values any more."""
        slot = self._taken.pop(id(storage), None)
        if slot is not None:
            self._free.append(slot)
            self.used -= slot.bytes

    def scratch(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Return storage for one layer alone. A lowering may fill it once, when the plan is made."""
        storage = self._backend.alloc(shape, dtype)
        self._owned.append(storage)
        self.size += 4 * storage.max_capacity
        return storage

    def end_layer(self) -> None:
        """Do nothing: a layer keeps its scratch storage."""

    def end_plan(self) -> None:
        """Do nothing: storage does not move."""

    def release(self) -> None:
        """Free all storage."""
        for storage in self._owned:
            storage.release()
        self._owned.clear()
