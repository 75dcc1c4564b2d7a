"""The memory that perframe holds in this process, and limits on it.

All storage counts: in host memory, in GL buffers and in GL textures. An object of `Held` stands for some bytes; they
count until it is gone. Only allocation and release touch the ledger, so that a steady frame does nothing here.
"""

from __future__ import annotations

import gc
import math
import weakref
from collections import deque
from collections.abc import Iterable
from itertools import count
from numbers import Real
from typing import Any, Protocol, Self

import numpy as np

from perframe.errors import HeldMemory, InputError, MemoryLimitError
from perframe.tensor.dtypes import Array
from perframe.tensor.locks import new_lock
from perframe.tensor.protocol import Storage

MEGABYTE = 1 << 20
BYTE = np.dtype(np.uint8)
MOST_CHANGES = 50  # that wait to be summed up, without a limit


class Holder(Protocol):
    """Holds memory, and can free a part of it that changes no result. A worker does."""

    def held(self, seen: set[int]) -> HeldMemory:
        """What it holds, apart from the objects whose ids are in `seen`; adds its own ids."""

    def free_spare(self) -> None:
        """Free the buffers that are kept only to be used again."""

    @property
    def oldest(self) -> int | None:
        """When its oldest droppable plan ran, in `uses` of the ledger; None if it can drop none in this thread."""

    def drop_oldest(self) -> bool:
        """Drop that plan. Return whether there was one."""


class Ledger:
    """Counts the bytes held, and keeps them within the limits."""

    def __init__(self) -> None:
        self.holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self.limits: weakref.WeakSet[MemoryLimit] = weakref.WeakSet()
        self.least: float = math.inf  # the smallest limit
        self.changes: deque[int] = deque()  # to be summed up, negative if freed: any thread appends, at any time
        self.uses = count()  # numbers that grow, to compare when plans were used
        self._held = 0
        self._lock = new_lock()

    @property
    def held(self) -> int:
        """The bytes held now."""
        with self._lock:
            changes = self.changes
            while changes:
                self._held += changes.popleft()
            return self._held

    def fits(self, size: int) -> bool:
        """Whether `size` more bytes are within the limits, without dropping anything."""
        return self.least == math.inf or self.held + size <= self.least

    def add(self, size: int, purpose: str) -> None:
        """Count more bytes. Frees what it may if they do not fit. Raises MemoryLimitError."""
        if self.least == math.inf and len(self.changes) < MOST_CHANGES:
            self.changes.append(size)
        elif not self._added(size):
            self._make_room(size, purpose)
            if not self._added(size):  # another thread was faster
                raise self._error(size, purpose)

    def require(self, size: int, purpose: str) -> None:
        """Make room for more bytes, as `add` does, but do not count them."""
        if not self.fits(size):
            self._make_room(size, purpose)

    def _added(self, size: int) -> bool:
        with self._lock:
            fits = self.held + size <= self.least
            self._held += fits * size
            return fits

    def _make_room(self, size: int, purpose: str) -> None:
        """Free spare buffers, then plans in the order of their last use, then what only cycles of references hold."""
        holders = list(self.holders)
        for holder in holders:
            holder.free_spare()
        while not self.fits(size):
            ages = [(age, at) for at, holder in enumerate(holders) if (age := holder.oldest) is not None]
            if not ages:
                break
            at = min(ages)[1]
            if not holders[at].drop_oldest():
                del holders[at]
        if not self.fits(size):
            gc.collect()
        if not self.fits(size):
            raise self._error(size, purpose)

    def _error(self, size: int, purpose: str) -> MemoryLimitError:
        limit = int(min(self.least, np.iinfo(np.int64).max))
        return MemoryLimitError(limit, size, self.held, purpose, self.listed())

    def listed(self) -> list[HeldMemory]:
        """The holders and their bytes, the largest first. Other bytes are listed as tensors and buffers."""
        seen = set[int]()
        found = [holder.held(seen) for holder in list(self.holders)]
        rest = self.held - sum(one.total for one in found)
        found.append(HeldMemory("tensors and buffers outside of workers", other=max(0, rest)))
        return sorted((one for one in found if one.total), key=lambda one: -one.total)

    def set_least(self) -> None:
        """Find the smallest limit again."""
        self.least = min((limit.bytes for limit in self.limits), default=math.inf)


ledger = Ledger()


def sum_unseen(sizes: Iterable[tuple[int, int]], seen: set[int]) -> int:
    """The sum of the bytes of objects whose ids are not in `seen` yet; adds their ids."""
    total = 0
    for key, size in sizes:
        if key not in seen:
            seen.add(key)
            total += size
    return total


class Held:
    """Bytes that count as held as long as this object lives. Raises MemoryLimitError if they do not fit."""

    size = 0  # until they are counted
    kept: Any = None  # what lives as long

    def __init__(self, size: int, purpose: str) -> None:
        ledger.add(size, purpose)
        self.size = size

    def __del__(self) -> None:
        if self.size:
            ledger.changes.append(-self.size)


class _CountedMemory(np.ndarray[Any, np.dtype[np.uint8]]):
    """Memory whose bytes count as held until the last view of it is gone."""

    def __del__(self) -> None:
        ledger.changes.append(-self.nbytes)


def counted_memory(size: int) -> Array:
    """Return new memory whose bytes count. Use it through views alone. Raises MemoryLimitError, and MemoryError."""
    ledger.add(size, "host memory")
    try:
        return _CountedMemory(size, BYTE)
    except BaseException:
        ledger.changes.append(-size)
        raise


def counted_bytes(memory: Any) -> int:
    """The bytes that count for a view of `counted_memory`, or for a GL object with `extra`; otherwise 0."""
    while isinstance(memory, np.ndarray):
        if isinstance(memory, _CountedMemory):
            return memory.nbytes
        memory = memory.base
    held = getattr(memory, "extra", None)
    return held.size if isinstance(held, Held) else 0


_arrays: weakref.WeakValueDictionary[tuple[int, int], Held] = weakref.WeakValueDictionary()
_arrays_lock = new_lock()


def held_arrays(arrays: Iterable[Array], purpose: str) -> list[Held]:
    """Count the arrays of a model as long as the result lives, each once: several workers may have it. Raises
    MemoryLimitError.
    """
    found = []
    with _arrays_lock:
        for array in arrays:
            key = array.__array_interface__["data"][0], array.nbytes
            held = _arrays.get(key)
            if held is None:
                held = _arrays[key] = Held(array.nbytes, purpose)
            found.append(held)
    return found


def with_room(storage: Storage, size: int, wanted: int = 0) -> int:
    """The elements to allocate for `size` of them in storage of this kind, while sizes grow: half as many more, or the
    `wanted` ones. There are fewer where the limits, or the kind of storage, leave no more room.
    """
    wanted = min(wanted or size + size // 2, storage.most_elements)
    for room in (wanted, size + (wanted - size) // 8):
        if room > size and ledger.fits(storage.bytes_for(room)):
            return room
    return size


class MemoryLimit:
    """A limit on the memory that perframe holds in this process: weights, plans, caches, states and tensors, on all
    devices together.

    `memory_mb` is in MiB. The limit holds until `release`, or the end of its `with` block; of several, the smallest
    counts. What would not fit raises MemoryLimitError, and changes nothing. Before that, plans for other input shapes
    than the last are dropped. Raises InputError for another number, and MemoryLimitError if more is held already.
    """

    bytes: int

    def __init__(self, memory_mb: float) -> None:
        if isinstance(memory_mb, bool) or not isinstance(memory_mb, Real) or not 0 < memory_mb < math.inf:
            raise InputError(f"memory_mb is a number of MiB above 0, and got {memory_mb!r}")
        self.bytes = int(memory_mb * MEGABYTE)
        ledger.limits.add(self)
        ledger.set_least()
        try:
            ledger.require(0, "the limit itself")
        except BaseException:
            self.release()
            raise

    @property
    def used(self) -> int:
        """The bytes that count against the limit now."""
        return ledger.held

    @property
    def holders(self) -> list[HeldMemory]:
        """The holders of these bytes, the largest first."""
        return ledger.listed()

    def __repr__(self) -> str:
        limit, used = self.bytes / MEGABYTE, self.used / MEGABYTE
        return f"MemoryLimit({limit:,.1f} MiB, {used:,.1f} MiB used{'' if self in ledger.limits else ', released'})"

    def release(self) -> None:
        """End the limit. May be called twice."""
        ledger.limits.discard(self)
        ledger.set_least()

    def __del__(self) -> None:
        self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
