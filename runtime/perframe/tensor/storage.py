"""Storage of tensors in host memory."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import addressof, c_char
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from perframe.errors import BackendError, ClosedError
from perframe.tensor.dtypes import Array, BackendType, DataType
from perframe.tensor.guarded import guard, guarded_bytes
from perframe.tensor.host_pending import HostPending
from perframe.tensor.locks import new_lock
from perframe.tensor.memory import BYTE, Held, counted_bytes, counted_memory
from perframe.tensor.protocol import Fence, Movable, Storage
from perframe.tensor.snapshots import Snapshots


def aligned_bytes(size: int, counts: bool = True) -> tuple[NDArray[np.uint8], int]:
    """Return `size` bytes and their address. The address is a multiple of 64, as the widest vector loads want it; with
    PERFRAME_GUARD the bytes lie next to a forbidden page. They count as held memory, unless nothing ever writes them.
    Raises MemoryLimitError, and BackendError where there is no memory.
    """
    if guard():
        return guarded_bytes(size)
    try:
        raw = counted_memory(size + 64) if counts else np.empty(size + 64, np.uint8)
    except (MemoryError, ValueError):
        raise BackendError(f"there is no memory for {size} bytes: run with smaller inputs") from None
    address = addressof(c_char.from_buffer(raw))  # type: ignore[arg-type]  # NumPy arrays are buffers
    start = -address % 64
    return np.ndarray(size, BYTE, raw, start), address + start


def address_of(array: Array) -> int:
    """Return the address of an array's data. `ctypes.data` gives the same address in five times the time."""
    address: int = array.__array_interface__["data"][0]
    return address


NOWHERE = aligned_bytes(0, counts=False)


class _WhileOpen:
    """An attribute of released storage, or of one without memory yet. Other storage has its own, which comes first."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, storage: HostStorage | None, owner: type) -> Any:
        if storage is None:
            return self
        if storage.has_memory():
            return vars(storage)[self._name]
        raise ClosedError("a tensor on the cpu was used after its release: clone what must outlive its worker")


class HostStorage:
    """A tensor's data in host memory.

    `write` is the last job that writes the data, and `reads` are the jobs and readbacks that read it after that.
    Released storage has no `memory` and no `address`: access to them raises ClosedError. Jobs that were submitted
    before the release hold the memory themselves. A thread holds `lock` while it copies values in or out, while it
    begins a job on the storage, and while it runs a program itself.
    """

    backend_type = BackendType.CPU
    is_open = True
    changes: float = 0
    held: Held | None = None  # what counts of memory that another made for it
    is_private = False  # True for a plan's own input, which one thread at a time uses
    _snapshots: Snapshots | None = None  # from the first download on
    _make: Callable[[], HostStorage] | None = None  # makes storage that has the memory, when it is first used
    _viewed: tuple[tuple[int, ...], DataType, Array] | None = None
    memory: Array = cast(Array, _WhileOpen())
    address: int = cast(int, _WhileOpen())

    def __init__(self, shape: Sequence[int], dtype: DataType, memory: Array | None = None) -> None:
        self.dtype = dtype
        self.size = math.prod(shape)
        self.write: Fence | None = None
        self.reads: list[Fence] = []
        self.within: tuple[HostStorage, int] | None = None  # the storage that contains this one, and the first byte
        self.lock = new_lock()
        if memory is not None:
            self.set_memory(memory)
        elif dtype is DataType.STRING:
            self.set_memory(np.full(self.size, "", object))
        else:
            self.set_memory(*aligned_bytes(self.size * dtype.numpy.itemsize))

    @classmethod
    def over(cls, array: Array) -> HostStorage:
        """Return storage over an array's own memory if that is read-only, contiguous and aligned, else over a copy."""
        dtype = DataType.of(array.dtype)
        aligned = array.flags.c_contiguous and array.flags.aligned and not array.flags.writeable
        if aligned and dtype is not DataType.STRING and not guard():
            return cls(array.shape, dtype, array.reshape(-1).view(np.uint8))
        storage = cls(array.shape, dtype)
        storage.upload(array)
        return storage

    @classmethod
    def later(cls, size: int, dtype: DataType, make: Callable[[], Array]) -> HostStorage:
        """Return storage over the array of `size` elements that `make` returns when the storage is first used."""
        storage = cls((0,), dtype)
        del storage.memory, storage.address
        storage.size, storage._make = size, lambda: cls.over(make())
        return storage

    @property
    def is_late(self) -> bool:
        """Whether its memory is made when it is first used."""
        return self._make is not None

    def has_memory(self) -> bool:
        """Whether the memory is there. It is made if that was put off; released storage has none."""
        if self._make is not None:
            with self.lock:
                if self._make is not None:
                    made = self._make()
                    self.set_memory(made.memory, made.address)
                    self._make = None
        return self.is_open

    def alias(self) -> HostStorage:
        """Return other storage over the current memory. It keeps the memory when this storage is released."""
        return HostStorage((self.size,), self.dtype, self.memory)

    def set_memory(self, memory: Array, address: int | None = None) -> None:
        """Replace the memory that holds the values."""
        self.memory = memory
        self.address = address_of(memory) if address is None else address
        self._viewed = None

    def enlarge(self, size: int, memory: tuple[Array, int]) -> None:
        """Take other memory, for `size` elements whose values are not defined, and its address."""
        self.set_memory(*memory)
        self.size = size
        self.changes += 1

    @property
    def snapshots(self) -> Snapshots:
        """Makes copies for callers. The caller holds the storage's lock."""
        if self._snapshots is None:
            self._snapshots = Snapshots()
        return self._snapshots

    @property
    def max_capacity(self) -> int:
        """The number of elements of the storage's dtype that fit."""
        return self.size

    @property
    def element_bytes(self) -> int:
        """The bytes of an element."""
        return int(self.dtype.numpy.itemsize)

    @property
    def held_bytes(self) -> int:
        """The bytes that count as held."""
        spare = 0 if self._snapshots is None else self._snapshots.held_bytes
        if self.held is not None:
            return self.held.size + spare
        return spare + (counted_bytes(self.memory) if "memory" in vars(self) else 0)

    def bytes_for(self, size: int) -> int:
        """The bytes that such storage takes for `size` elements."""
        return size * self.element_bytes + 64

    @property
    def most_elements(self) -> int:
        """The most elements that such storage may have."""
        return sys.maxsize

    @property
    def fences(self) -> list[Fence]:
        """The jobs and readbacks that must finish before a write of the data."""
        if self.write is None and not self.reads:
            return []
        pending = [*self.reads, *([self.write] if self.write else [])]
        return [fence for fence in pending if not fence.done]

    @property
    def busy(self) -> bool:
        """Whether a job or a readback still uses the data."""
        write = self.write
        if write is not None and not write.done:
            return True
        for fence in self.reads:  # noqa: SIM110  # a frame waits, and this takes less time
            if not fence.done:
                return True
        return False

    @property
    def is_written(self) -> bool:
        """Whether the values exist: no job that writes them is under way or has failed. Never blocks."""
        if self.write is not None and self.write.done:
            with suppress(Exception):
                self.write.wait()  # returns at once, or raises the writer's error
                self.write = None
        return self.write is None

    def view(self, shape: Sequence[int], dtype: DataType) -> Array:
        """Return the memory as an array, without waiting for a job that writes it."""
        viewed = self._viewed
        if viewed is not None and viewed[0] == shape and viewed[1] is dtype:
            return viewed[2]  # most frames ask for the view of the frame before
        if dtype is DataType.STRING:
            made = self.memory[: math.prod(shape)].reshape(shape)
        else:
            made = np.ndarray(shape, dtype.numpy, self.memory)  # in half of the time of a slice, a view and a reshape
        self._viewed = (tuple(shape), dtype, made)
        return made

    def upload(self, array: Array) -> None:
        """Write the values of `array`. Waits for work that still uses the old values, even if that work fails."""
        self.changes += 1
        if self.is_private and not self.busy:
            self.reads, self.write = [], None
            np.copyto(self.view(array.shape, self.dtype), array)
            return
        self._acquire_unused()
        try:
            np.copyto(self.view(array.shape, self.dtype), array)
        finally:
            self.lock.release()

    def upload_part(self, array: Array, at: Sequence[int], shape: Sequence[int]) -> None:
        """Write a block of a tensor of this shape, from the index `at`. Waits as `upload` does."""
        part = tuple(slice(first, first + dim) for first, dim in zip(at, array.shape, strict=True))
        self.assign(part, array, shape)

    def assign(self, index: Any, values: Any, shape: Sequence[int]) -> None:
        """Write items of a tensor of this shape. Waits as `upload` does."""
        self.changes += 1
        self._acquire_unused()
        try:
            self.view(shape, self.dtype)[index] = values
        finally:
            self.lock.release()

    def items(self, index: Any, shape: Sequence[int], dtype: DataType) -> Any:
        """Return a copy of items of a tensor of this shape. Waits for a job that writes the data."""
        self._acquire_written()
        try:
            found = self.view(shape, dtype)[index]
            return found.copy() if isinstance(found, np.ndarray) else found
        finally:
            self.lock.release()

    def native(self, shape: Sequence[int], dtype: DataType, writable: bool = False) -> Array:
        """Return the memory as an array, once its writer has finished; with `writable`, once nothing uses it."""
        if writable:
            self._acquire_unused()
            self.changes = math.nan
        else:
            self._acquire_written()
        try:
            array = self.view(shape, dtype).view()
            array.flags.writeable = writable
            return array
        finally:
            self.lock.release()

    def _acquire_unused(self) -> None:
        """Acquire the lock once no work uses the values any more, even if that work fails."""
        while True:
            self.lock.acquire()  # by hand, in half of the time of `with`
            fences = self.fences if self.write is not None or self.reads else ()
            if not fences:
                self.reads, self.write = [], None
                return
            self.lock.release()
            for fence in fences:
                with suppress(Exception):
                    fence.wait()

    def _acquire_written(self) -> None:
        """Acquire the lock once the values exist. Raises the error of the job that was to write them."""
        while True:
            self.lock.acquire()
            write = self.write
            if write is None:
                return
            if write.done and self.is_written:
                return
            self.lock.release()
            write.wait()

    def download(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Array:
        """Return a copy of the values. Waits for a job that writes them."""
        shape, dtype = (self.size,) if shape is None else shape, dtype or self.dtype
        write = self.write
        if write is not None:
            write.wait()
        self.lock.acquire()
        try:
            if self.write is write:  # otherwise another thread has begun a write meanwhile
                self.write = None
                return (self._snapshots or self.snapshots).of(self.view(shape, dtype))
        finally:
            self.lock.release()
        pending = self.request(shape, dtype)
        pending.wait()
        return pending.values()

    def request(self, shape: Sequence[int], dtype: DataType) -> HostPending:
        """Begin a download. It takes its snapshot after the last writer has finished and before the next one begins."""
        with self.lock:
            pending = HostPending(self.view(shape, dtype), self.write, self.snapshots, self.lock)
            if self.reads:
                self.reads = [fence for fence in self.reads if not fence.done]
            if not pending.is_taken:
                self.reads.append(pending)
        return pending

    def free_spare(self) -> None:
        """Free the memory that is kept for later downloads."""
        if self._snapshots is not None:
            self._snapshots.free()

    def like(self, shape: Sequence[int], dtype: DataType) -> HostStorage:
        """Allocate new host memory."""
        return HostStorage(shape, dtype)

    def pin(self, tensor: Movable) -> Storage:
        """Move `tensor`'s data into host memory, unless it is there. Blocks if the data lies on a GPU."""
        return tensor.pin_like(self)

    def is_beside(self, other: Storage) -> bool:
        """Whether the other storage is in host memory."""
        return other.backend_type is BackendType.CPU

    def release(self) -> None:
        """Drop the memory. The last job or readback that still uses it frees it."""
        if self._make is not None:
            with self.lock:  # another thread may be making the memory
                self._make = None
        self.is_open, self._viewed, self._snapshots, self.held = False, None, None, None
        for name in ("memory", "address"):
            vars(self).pop(name, None)
