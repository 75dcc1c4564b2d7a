"""The storages of one input of a plan, so that a run's value can be uploaded while earlier runs read theirs."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence

from perframe.backends.operand import Operand
from perframe.backends.protocol import Backend
from perframe.tensor import HostStorage, Storage, Tensor
from perframe.tensor.memory import ledger, with_room

# the number of runs of one plan that may be under way before an upload waits: three, or more while inputs are small
MIN_IN_FLIGHT, MAX_IN_FLIGHT, SMALL_INPUTS = 3, 64, 64 << 20


class InputRing:
    """A ring of storages for copies of one input. Steps read `bound`: a storage of the ring, or a tensor's own.

    `reader` is the backend of these steps, `planned` the storage with which they were planned. `owned` receives each
    storage that the ring adds.
    """

    def __init__(self, operand: Operand, reader: Backend, owned: list[Storage]) -> None:
        self.name, self.dtype, self.reader = operand.name, operand.dtype, reader
        self.planned = self.bound = operand.storage
        self._operand, self._owned = operand, owned
        self._storages, self._capacity = [_private(operand.storage)], operand.storage.max_capacity
        self.reserved: dict[int, weakref.ref[Tensor]] = {}  # values of later runs, by the ids of storages

    def __len__(self) -> int:
        return len(self._storages)

    @property
    def binds_foreign(self) -> bool:
        """Whether steps read a storage that does not belong to the plan."""
        return self.bound not in self._storages

    def drop(self) -> bool:
        """Leave the planned storage to others, and return True, unless it is gone already or holds a later run's value.
        The ring adds another storage when it needs one.
        """
        if self.planned not in self._storages or id(self.planned) in self.reserved:
            return False
        self._storages.remove(self.planned)
        if isinstance(self.planned, HostStorage):
            self.planned.is_private = False
        return True

    def next(self, shape: Sequence[int]) -> Storage:
        """Return storage for a value of this shape. If too many runs are under way, return the oldest storage; the
        upload waits for it.
        """
        first = self._storages[0] if self._storages and not self.reserved else None
        if first is not None and not first.busy and first.max_capacity >= math.prod(shape):
            return first  # as in most frames
        found = self.free(shape)
        if found is not None:
            return found
        for at, storage in enumerate(self._storages):
            if id(storage) not in self.reserved and storage.max_capacity >= math.prod(shape):
                self._storages.append(self._storages.pop(at))
                return storage
        return self._add(shape)

    def free(self, shape: Sequence[int]) -> Storage | None:
        """Return storage that no run reads or will read; None if too many runs are under way."""
        storages, reserved, size, small = self._storages, self.reserved, math.prod(shape), None
        for storage in storages:
            if not storage.busy and not (reserved and id(storage) in reserved):
                if storage.max_capacity >= size:
                    return storage
                small = storage
        if small is not None and small is not self.planned:  # sizes grow: more will come
            self._storages.remove(small)
            self._owned.remove(small)
            small.release()
            return self._add((with_room(self.planned, size, 2 * size),))
        held = len(storages) * self._capacity * self.dtype.numpy.itemsize
        if len(storages) < MIN_IN_FLIGHT or (len(storages) < MAX_IN_FLIGHT and held < SMALL_INPUTS):
            waits = any(id(storage) not in reserved and storage.max_capacity >= size for storage in storages)
            if not waits or ledger.fits(self.planned.bytes_for(size)):
                return self._add(shape)
        return None

    def reserve(self, storage: Storage) -> Tensor:
        """Return a tensor over a storage. No other run gets the storage while the tensor lives."""
        key, reserved = id(storage), self.reserved
        tensor = Tensor.over(storage, self._operand.shape, self.dtype, self.name)
        reserved[key] = weakref.ref(tensor, lambda _: reserved.pop(key, None))
        return tensor

    def _add(self, shape: Sequence[int]) -> Storage:
        storage = _private(self.planned.like(shape, self.dtype))
        self._storages.append(storage)
        self._owned.append(storage)
        return storage


def _private(storage: Storage) -> Storage:
    """Mark storage as private: only runs of the plan use it, and the worker's lock guards these."""
    if isinstance(storage, HostStorage):
        storage.is_private = True
    return storage
