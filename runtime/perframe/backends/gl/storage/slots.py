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


class Allocator(Protocol):
    """The methods of a backend that slots use."""

    precision: Precision

    def alloc(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> GLStorage:
        """New storage, for halves if asked."""

    def capacity(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> tuple[str, int]:
        """The class of storage that a value needs, and its size. Any storage of the class that is as large serves."""


@dataclass(eq=False)
class _Slot:
    """A storage, and the largest value that a plan wants to put there."""

    kind: str
    size: int
    shape: Sequence[int]
    storage: GLStorage
    is_large_enough: bool = True

    @property
    def bytes(self) -> int:
        """Its bytes."""
        return self.storage.element_bytes * max(self.storage.max_capacity, math.prod(self.shape))

    def want(self, size: int, shape: Sequence[int]) -> None:
        """Note that a plan wants more room. Another run may be under way, so nothing happens yet."""
        self.size, self.shape, self.is_large_enough = size, shape, False

    def settle(self) -> None:
        """Make the room that was wanted."""
        if not self.is_large_enough:
            self.storage.enlarge(self.shape)
            self.is_large_enough = True


@dataclass
class Pool:
    """The storages that all plans of a backend share, since their runs follow each other. The last plan frees them."""

    backend: Allocator
    slots: list[_Slot] = field(default_factory=list)
    users: int = 0

    def leave(self) -> None:
        """Note that a plan needs no storage any more."""
        self.users -= 1
        if not self.users:
            for slot in self.slots:
                slot.storage.release()
            self.slots.clear()


class Slots:
    """The workspace of one plan. Values whose lifetimes do not meet share a storage: each takes the smallest free one
    that is large enough, or else enlarges the largest free one, also for the plans that were made before.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool, self._free = pool, list(pool.slots)
        self._taken: dict[int, _Slot] = {}
        self._scratch: list[Storage] = []
        self._used: set[_Slot] = set()
        self.used = 0
        pool.users += 1
        self._is_open = True

    @property
    def size(self) -> int:
        """The bytes of all storages that the plan uses."""
        return sum(slot.bytes for slot in self._used)

    def take(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> Storage:
        """Take storage for a value, until it is given back."""
        return self._take(shape, dtype, is_half or self._pool.backend.precision.halves_value(dtype))

    def _take(self, shape: Sequence[int], dtype: DataType, is_half: bool) -> Storage:
        is_half = is_half or dtype is DataType.FLOAT16
        kind, size = self._pool.backend.capacity(shape, dtype, is_half)
        free = [slot for slot in self._free if slot.kind == kind]
        fitting = [slot for slot in free if slot.size >= size]
        if fitting:
            slot = min(fitting, key=lambda slot: slot.size)
        elif free:
            slot = max(free, key=lambda slot: slot.size)
            slot.want(size, shape)
        else:
            slot = _Slot(kind, size, shape, self._pool.backend.alloc(shape, dtype, is_half))
            self._pool.slots.append(slot)
        if slot in self._free:
            self._free.remove(slot)
        self._taken[id(slot.storage)] = slot
        self._used.add(slot)
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
        """Make the room that the plan needs. Values of other plans' runs are lost."""
        for slot in self._used:
            slot.settle()

    def release(self) -> None:
        """Leave the pool."""
        if self._is_open:
            self._is_open = False
            self._pool.leave()
