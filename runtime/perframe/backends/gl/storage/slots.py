"""The workspaces of backends that allocate each value separately: their plans share a pool of storages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.precision import Precision
from perframe.safety.records import dataclass
from perframe.tensor import DataType, Storage
from perframe.tensor.memory import counted_bytes, ledger


class Allocator(Protocol):
    """The methods of a backend that slots use."""

    precision: Precision

    def alloc(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> GLStorage:
        """New storage, for halves if asked."""

    def capacity(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> tuple[str, int]:
        """The class of storage that a value needs, and its size. Any storage of the class that is as large serves."""


@dataclass(eq=False)
class _Slot:
    """A storage that plans share. `size` is that of the largest value that a plan wants to put there, and `made` that
    of the storage.
    """

    kind: str
    size: int
    made: int
    storage: GLStorage
    users: int = 0  # plans

    @property
    def bytes(self) -> int:
        """Its bytes."""
        return self.storage.element_bytes * self.storage.max_capacity

    def enlarge(self, size: int, shape: Sequence[int]) -> None:
        """Make room for a value."""
        self.storage.enlarge(shape)
        self.made, self.size = size, max(size, self.size)


@dataclass
class Pool:
    """The storages that all plans of a backend share, since their runs follow each other. The last plan that uses one
    frees it.
    """

    backend: Allocator
    slots: list[_Slot] = field(default_factory=list)

    def leave(self, slot: _Slot) -> None:
        """Note that a plan needs a storage no longer."""
        slot.users -= 1
        if not slot.users:
            slot.storage.release()
            self.slots.remove(slot)


def growth(storages: Sequence[tuple[GLStorage, int]]) -> int:
    """The bytes more that storages need to hold other numbers of elements."""
    return sum(storage.bytes_for(size) - counted_bytes(storage.memory) for storage, size in storages)


def require_growth(storages: Sequence[tuple[GLStorage, int]]) -> Sequence[tuple[GLStorage, int]]:
    """Make room for all of them, and return them. Raises MemoryLimitError."""
    ledger.require(growth(storages), "the values of a run")
    return storages


class Slots:
    """The workspace of one plan. Values whose lifetimes do not meet share a storage: each takes the smallest free one
    that is large enough, or else enlarges the largest free one, also for the plans that were made before.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool, self._free = pool, list(pool.slots)
        self._taken: dict[int, _Slot] = {}
        self._scratch: list[Storage] = []
        self._used: dict[_Slot, tuple[int, Sequence[int]]] = {}  # with size and shape of this plan's largest value
        self.used = 0

    @property
    def size(self) -> int:
        """The bytes of all storages that the plan uses."""
        return sum(
            max(slot.bytes, slot.storage.element_bytes * math.prod(shape)) for slot, (_, shape) in self._used.items()
        )

    def held(self) -> list[tuple[int, int]]:
        """The ids of the storages that the plan uses, and their bytes."""
        return [(id(slot.storage), slot.storage.held_bytes) for slot in self._used]

    def take(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> Storage:
        """Take storage for a value, until it is given back."""
        return self._take(shape, dtype, is_half or self._pool.backend.precision.halves_value(dtype))

    def _take(self, shape: Sequence[int], dtype: DataType, is_half: bool) -> Storage:
        is_half = is_half or dtype is DataType.FLOAT16
        kind, size = self._pool.backend.capacity(shape, dtype, is_half)
        free = [slot for slot in self._free if slot.kind == kind and slot.storage.is_open]
        fitting = [slot for slot in free if slot.size >= size]
        if fitting:
            slot = min(fitting, key=lambda slot: slot.size)
        elif free:
            slot = max(free, key=lambda slot: slot.size)
        else:
            slot = _Slot(kind, size, size, self._pool.backend.alloc(shape, dtype, is_half))
            self._pool.slots.append(slot)
        slot.users += slot not in self._used
        if slot not in self._used or self._used[slot][0] < size:
            self._used[slot] = size, shape
        slot.size = max(slot.size, size)  # another run may be under way, so nothing happens yet
        if slot in self._free:
            self._free.remove(slot)
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
        """Return storage for values that one layer passes between its steps. It has no halves: sums stay exact."""
        self._scratch.append(self._take(shape, dtype, False))
        return self._scratch[-1]

    def end_layer(self) -> None:
        """Give the layer's scratch back."""
        while self._scratch:
            self.give_back(self._scratch.pop())

    def end_plan(self) -> None:
        """Do nothing: storage is enlarged when the plan's first run begins."""

    def begin(self) -> None:
        """Make the room that the plan needs, all of it or none. Values of other plans' runs are lost. Raises
        MemoryLimitError.
        """
        small = [(slot, size, shape) for slot, (size, shape) in self._used.items() if slot.made < size]
        require_growth([(slot.storage, math.prod(shape)) for slot, _, shape in small])
        for slot, size, shape in small:
            slot.enlarge(size, shape)

    def release(self) -> None:
        """Leave the pool."""
        for slot in self._used:
            self._pool.leave(slot)
        self._used.clear()
