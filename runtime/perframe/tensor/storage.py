"""Where a tensor's data lies: the protocol that every backend's storage follows, and host memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from perframe.errors import BackendError, ClosedError
from perframe.sizes.traced import plain
from perframe.tensor.dtypes import Array, BackendType, DataType
from perframe.tensor.guarded import guard, guarded_bytes
from perframe.tensor.locks import new_lock
from perframe.tensor.readback import Pending

if TYPE_CHECKING:
    from perframe.tensor import Tensor


@runtime_checkable
class Fence(Protocol):
    """Something that will be finished: a job, a GL fence."""

    @property
    def done(self) -> bool:
        """Whether it is. Never blocks."""

    def wait(self) -> None:
        """Block until it is."""


Job = TypeVar("Job", bound=Fence)


class Storage(Protocol):
    """A tensor's data on a backend."""

    @property
    def backend_type(self) -> BackendType:
        """Where the data lies."""

    @property
    def max_capacity(self) -> int:
        """How many elements fit."""

    @property
    def busy(self) -> bool:
        """Whether an upload would have to wait for work that is under way."""

    @property
    def is_open(self) -> bool:
        """Whether it was not released."""

    def upload(self, array: Array) -> None:
        """Write the values of `array`; later work on this backend sees them."""

    def download(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Array:
        """The values; blocks. Without a shape, all of the storage, flat."""

    def request(self, shape: Sequence[int], dtype: DataType) -> Pending:
        """Begin a download; never blocks."""

    def like(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """New storage on the same backend."""

    def pin(self, tensor: Tensor) -> Storage:
        """Move `tensor`'s data to this storage's backend and return its new storage there."""

    def release(self) -> None:
        """Free the memory."""


def aligned_bytes(size: int) -> tuple[NDArray[np.uint8], int]:
    """`size` bytes that begin at a multiple of 64, what the widest vector load wants, and their address; with
    PERFRAME_GUARD they lie next to a page that may not be touched. Raises BackendError where there is no memory.
    """
    if guard():
        return guarded_bytes(size)
    try:
        raw = np.empty(size + 64, np.uint8)
    except (MemoryError, ValueError):
        raise BackendError(f"there is no memory for {size} bytes: run with smaller inputs") from None
    address = addressof(c_char.from_buffer(raw))  # type: ignore[arg-type]  # NumPy arrays are buffers
    start = -address % 64
    return raw[start : start + size], address + start


def address_of(array: Array) -> int:
    """Where an array's data begins. `ctypes.data` says the same, in five times the time."""
    address: int = array.__array_interface__["data"][0]
    return address


NOWHERE = aligned_bytes(0)


class HostStorage:
    """A tensor's data in host memory. `write` is the last job that writes it, `reads` those that read it since.

    Released storage has no `memory` and no `address`: asking for them raises ClosedError. A job that was submitted
    before holds the memory itself. `lock` is held while values are copied in or out, by whoever begins to use them, and
    during a run in the thread that submits it.
    """

    backend_type = BackendType.CPU
    is_open = True
    is_private = False  # whether it is a plan's input, which one thread at a time uses
    memory: Array
    address: int

    def __init__(self, shape: Sequence[int], dtype: DataType, memory: Array | None = None) -> None:
        self.dtype = dtype
        self.size = plain(math.prod(shape))
        self.write: Fence | None = None
        self.reads: list[Fence] = []
        self.within: tuple[HostStorage, int] | None = None  # the storage that it is a part of, and its first byte there
        self.lock = new_lock()
        if memory is not None:
            self.set_memory(memory)
        elif dtype is DataType.STRING:
            self.set_memory(np.full(self.size, "", object))
        else:
            self.set_memory(*aligned_bytes(self.size * dtype.numpy.itemsize))

    @classmethod
    def over(cls, array: Array) -> HostStorage:
        """An array's own memory, where nobody changes its values and they lie as kernels read them; else a copy."""
        dtype = DataType.of(array.dtype)
        aligned = array.flags.c_contiguous and array.flags.aligned and not array.flags.writeable
        if aligned and dtype is not DataType.STRING and not guard():
            return cls(array.shape, dtype, array.reshape(-1).view(np.uint8))
        storage = cls(array.shape, dtype)
        storage.upload(array)
        return storage

    def held(self) -> HostStorage:
        """Storage over the memory that this one has now, which keeps it when this one is released."""
        return HostStorage((self.size,), self.dtype, self.memory)

    def set_memory(self, memory: Array, address: int | None = None) -> None:
        """Have the values in this memory from now on."""
        self.memory = memory
        self.address = address_of(memory) if address is None else address
        self._viewed: tuple[tuple[int, ...], DataType, Array] | None = None

    @property
    def max_capacity(self) -> int:
        """How many elements of its own dtype fit."""
        return self.size

    @property
    def fences(self) -> list[Fence]:
        """All that must be finished before the data may be written."""
        pending = [*self.reads, *([self.write] if self.write else [])]
        return [fence for fence in pending if not fence.done]

    @property
    def busy(self) -> bool:
        """Whether a job still reads or writes it."""
        return (self.write is not None or bool(self.reads)) and bool(self.fences)

    @property
    def is_written(self) -> bool:
        """Whether its values exist: no job that writes them is under way or has failed. Never blocks."""
        if self.write is not None and self.write.done:
            with suppress(Exception):
                self.write.wait()  # at once, and raises what the writer raised
                self.write = None
        return self.write is None

    def view(self, shape: Sequence[int], dtype: DataType) -> Array:
        """The memory as an array, without waiting for whom writes it."""
        viewed = self._viewed
        if viewed is not None and viewed[0] == shape and viewed[1] is dtype:
            return viewed[2]  # a frame asks for the same as the frame before
        if dtype is DataType.STRING:
            made = self.memory[: math.prod(shape)].reshape(shape)
        else:
            made = np.ndarray(shape, dtype.numpy, self.memory)  # in half of the time of a slice, a view and a reshape
        self._viewed = (tuple(shape), dtype, made)
        return made

    def upload(self, array: Array) -> None:
        """Write the values of `array`; waits for work that still uses the old ones, whether it succeeds or fails."""
        if self.is_private and self.write is None and not self.reads:
            np.copyto(self.view(array.shape, self.dtype), array)
            return
        while True:
            self.lock.acquire()  # by hand, in half of the time of `with`
            try:
                fences = self.fences if self.write is not None or self.reads else ()
                if not fences:
                    self.reads, self.write = [], None
                    np.copyto(self.view(array.shape, self.dtype), array)
                    return
            finally:
                self.lock.release()
            for fence in fences:
                with suppress(Exception):
                    fence.wait()

    def download(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Array:
        """A copy of the values; waits for them."""
        shape, dtype = (self.size,) if shape is None else shape, dtype or self.dtype
        self.lock.acquire()
        try:
            if self.write is None:
                return self.view(shape, dtype).copy()
        finally:
            self.lock.release()
        pending = self.request(shape, dtype)
        pending.wait()
        return pending.values()

    def request(self, shape: Sequence[int], dtype: DataType) -> HostPending:
        """A download that is taken when whoever writes has finished, and before anyone writes again."""
        with self.lock:
            pending = HostPending(self, shape, dtype)
            if self.reads:
                self.reads = [fence for fence in self.reads if not fence.done]
            if not pending.is_taken:
                self.reads.append(pending)
        return pending

    def like(self, shape: Sequence[int], dtype: DataType) -> HostStorage:
        """New host memory."""
        return HostStorage(shape, dtype)

    def pin(self, tensor: Tensor) -> Storage:
        """Move `tensor`'s data into host memory; blocks if it lies on a GPU."""
        return tensor.pin_like(self)

    def release(self) -> None:
        """Forget the memory. It is freed with the last job or readback that still uses it."""
        if self.is_open:
            del self.memory, self.address
            self._viewed = None
            self.__class__ = ReleasedStorage


class ReleasedStorage(HostStorage):
    """What host storage becomes. In a class of its own, since `__getattr__` slows all attributes of its objects."""

    is_open = False

    def __getattr__(self, name: str) -> Any:
        """Python asks here for what an object does not have: this one has no memory."""
        if name in ("memory", "address"):
            raise ClosedError("a tensor on the cpu was used after its release: clone what must outlive its worker")
        raise AttributeError(f"HostStorage has no attribute {name!r}")


class HostPending:
    """A snapshot of host memory once `write` is done. It is itself a fence that the next writer waits for."""

    def __init__(self, storage: HostStorage, shape: Sequence[int], dtype: DataType) -> None:
        """The caller holds the storage's lock."""
        self._values: Array | None = storage.view(shape, dtype)  # a copy of them, once it is taken
        self._write = storage.write
        self.is_taken = False
        self._failure: Exception | None = None
        self._lock = storage.lock  # the next writer's thread may ask while the user polls
        self._take_if_written()

    def poll(self) -> bool:
        """Whether the writer has finished; takes the snapshot when it has."""
        if not self.is_taken:
            with self._lock:
                self._take_if_written()
        return self.is_taken

    def _take_if_written(self) -> None:
        write, values = self._write, self._values
        if self.is_taken or values is None or not (write is None or write.done):
            return
        try:
            if write is not None:
                write.wait()  # at once, and raises what the writer raised
            self._values = values.copy()
        except Exception as error:
            self._failure = error
        self._write, self.is_taken = None, True

    @property
    def behind(self) -> tuple[Fence, ...]:
        """What it waits for."""
        write = self._write
        return () if write is None else (write,)

    @property
    def done(self) -> bool:
        """Whether the snapshot is taken. Never blocks."""
        return self.poll()

    def wait(self) -> None:
        """Block until the snapshot is taken."""
        write = self._write
        if write is not None:
            with suppress(Exception):  # values() raises it
                write.wait()
        self.poll()

    def values(self) -> Array:
        """The snapshot, once: it keeps none for itself. Raises what the writer raised."""
        if self._failure is not None:
            raise self._failure
        values, self._values = self._values, None
        assert self.is_taken and values is not None, "values() before poll(), or twice"
        return values


_locking = new_lock()


def lock_all(storages: Sequence[HostStorage]) -> None:
    """Take the locks of all, which the caller gives back. Threads that want several take turns: no two of them can wait
    for each other.
    """
    with _locking:
        for storage in storages:
            storage.lock.acquire()


def begin_job(
    begin: Callable[[list[Fence], list[Fence]], Job],
    sources: Sequence[HostStorage],
    targets: Sequence[HostStorage],
) -> Job:
    """Begin a job that reads `sources` and writes `targets`: `begin` gets what it needs, and what it only comes after.

    Whoever uses one of them next waits for the job. No other thread comes between the look at them and the begin.
    """
    together = [*sources, *targets]
    lock_all(together)
    try:
        needed = [storage.write for storage in sources if storage.write is not None]
        job = begin(needed, [fence for storage in targets for fence in storage.fences])
        for storage in sources:
            storage.reads = [fence for fence in storage.reads if not fence.done]
            storage.reads.append(job)
        for storage in targets:
            storage.write, storage.reads = job, []
    finally:
        for storage in together:
            storage.lock.release()
    return job
