"""Storage for what lives within a run, for backends that allocate every value by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from perframe.tensor import DataType, Storage


class Allocator(Protocol):
    """A backend, as far as slots know it."""

    def alloc(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """New storage."""

    def capacity(self, shape: Sequence[int], dtype: DataType) -> tuple[str, int]:
        """The class of storage that a value needs, and how much; storage of one class that is large enough will do."""


@dataclass
class _Slot:
    kind: str
    size: int
    storage: Storage

    @property
    def bytes(self) -> int:
        """What it takes: of whatever dtype, four bytes an element."""
        return 4 * self.storage.max_capacity


class Slots:
    """Storage that values share whose lifetimes do not meet: each takes the smallest free one that is large enough."""

    def __init__(self, backend: Allocator) -> None:
        self._backend = backend
        self._free: list[_Slot] = []
        self._taken: dict[int, _Slot] = {}
        self._owned: list[Storage] = []
        self.size = self.used = 0

    def take(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Storage until it is given back."""
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
        """Nothing reads its values any more."""
        slot = self._taken.pop(id(storage), None)
        if slot is not None:
            self._free.append(slot)
            self.used -= slot.bytes

    def scratch(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Storage for one layer alone: lowerings may fill it when the plan is made, and not in each run."""
        storage = self._backend.alloc(shape, dtype)
        self._owned.append(storage)
        self.size += 4 * storage.max_capacity
        return storage

    def end_layer(self) -> None:
        """Its scratch stays."""

    def end_plan(self) -> None:
        """What was taken stays where it is."""

    def release(self) -> None:
        """Free all storage."""
        for storage in self._owned:
            storage.release()
        self._owned.clear()
