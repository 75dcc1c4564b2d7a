"""The addresses at which a program's steps find their operands. They change with a run's inputs and with the arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.program.arena import Arena, ArenaStorage
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.ir.sizes.size import plain
from perframe.safety.records import dataclass
from perframe.tensor import DataType
from perframe.tensor.background import is_beside_frames
from perframe.tensor.storage import HostStorage, address_of

Ints = NDArray[np.int64]
MUCH = 1 << 21  # elements of weights: packing them takes some milliseconds


class Bound(Protocol):
    """The operands and numbers of a step."""

    @property
    def operands(self) -> list[HostStorage]:
        """The storages that the step reads and writes."""

    @property
    def numbers(self) -> Sequence[int] | None:
        """The numbers that a kernel reads after the addresses of its operands; None for a step in Python."""


@dataclass(frozen=True)
class Addresses:
    """The indices of addresses in `numbers`, the numbers of all steps.

    `in_arena` has the index of each address in the arena (in `numbers` an offset from its begin), and `storages` the
    storage for each. `elsewhere` maps the id of each of the `others`, storages outside the arena, to its indices.
    `starts` has the index at which each step's numbers begin. `memories` keeps the memory of the others alive, since a
    run may outlive their owners.
    """

    numbers: Sequence[int]
    starts: list[int]
    in_arena: NDArray[np.intp]
    storages: list[ArenaStorage]
    elsewhere: dict[int, list[int]]
    others: dict[int, HostStorage]
    memories: list[NDArray[Any]]

    @property
    def size(self) -> int:
        """The bytes of the arena that the steps use."""
        return max([one.offset + one.size * one.dtype.numpy.itemsize for one in self.storages], default=0)

    @classmethod
    def of(cls, steps: Sequence[Bound]) -> Addresses:
        """Collect the addresses of these steps. Their packed weights are made now."""
        _make_late([operand for step in steps if step.numbers is not None for operand in step.operands])
        numbers: list[int] = []
        starts: list[int] = []
        in_arena: list[int] = []
        storages: list[ArenaStorage] = []
        elsewhere: dict[int, list[int]] = {}
        others: dict[int, HostStorage] = {}
        for step in steps:
            starts.append(len(numbers))
            if step.numbers is None:
                continue
            for operand in step.operands:
                if isinstance(operand, ArenaStorage):
                    in_arena.append(len(numbers))
                    storages.append(operand)
                else:
                    elsewhere.setdefault(id(operand), []).append(len(numbers))
                    others[id(operand)] = operand
                numbers.append(operand.offset if isinstance(operand, ArenaStorage) else operand.address)
            numbers += step.numbers
        memories = [operand.memory for operand in others.values()]
        return cls(numbers, starts, np.array(in_arena, np.intp), storages, elsewhere, others, memories)

    def by_whole(self) -> dict[int, list[int]]:
        """The indices of addresses in each storage outside the arena and in its parts, by the id of the storage."""
        found: dict[int, list[int]] = {}
        for key, indices in self.elsewhere.items():
            found.setdefault(id(whole_of(self.others[key])[0]), []).extend(indices)
        return found


class Bindings:
    """Writes addresses into the numbers of a program's steps: one array, with the numbers of `known` in order."""

    def __init__(
        self, arena: Arena | None, size: int, known: Addresses, numbers: Ints, elsewhere: Mapping[int, Sequence[int]]
    ) -> None:
        """`size` is the number of bytes of the arena that a run needs. `elsewhere` maps the ids of storages that may be
        replaced to their indices and those of their parts. Call `attach` next.
        """
        # by the planned storage: operands of steps, the index of one in or within that storage, and its first byte
        self._readers: dict[int, list[tuple[list[HostStorage], int, int]]] = {}
        self._places: dict[int, list[tuple[int, int]]] = {}  # indices in `numbers`, with first bytes
        self._moved: list[ArenaStorage] = []  # read by steps in Python
        self._numbers, self._in_arena, self._elsewhere = numbers, known.in_arena, elsewhere
        self._bound: dict[int, NDArray[Any]] = {}  # keeps the memory of replacements alive
        self.addresses: dict[int, int] = {}  # of replacements, by the planned storage
        self._arena, self._size, self._base, self._moved_to = arena, size, 0, 0

    def attach(self, steps: Sequence[Bound], base: int = 0) -> None:
        """Begin with the planned operands and the arena at `base`, and note the operands of steps in Python."""
        self._base, self._moved_to = base, 0
        for step in steps:
            if step.numbers is None:
                self._moved += [operand for operand in step.operands if isinstance(operand, ArenaStorage)]
                for index, operand in enumerate(step.operands):
                    whole, first = (operand, 0) if isinstance(operand, ArenaStorage) else whole_of(operand)
                    self._readers.setdefault(id(whole), []).append((step.operands, index, plain(first)))

    def resize(self, size: int, base: int) -> None:
        """Note that the numbers were written again: with the addresses of replacements, and of an arena at `base`."""
        self._size, self._base = size, base
        self._places.clear()

    def replace(self, planned: HostStorage, new: HostStorage) -> None:
        """Make all steps use `new` instead of the planned storage, and parts of it instead of the storage's parts."""
        for index, first in self._places_of(planned):
            self._numbers[index] = new.address + first
        for operands, index, first in self._readers.get(id(planned), ()):
            part = operands[index]
            operands[index] = new if part.within is None else part_of(new, first, part.size, part.dtype)
        self._bound[id(planned)], self.addresses[id(planned)] = new.memory, new.address

    def _places_of(self, planned: HostStorage) -> list[tuple[int, int]]:
        """Return where the planned storage's addresses stand, and those of its parts."""
        found = self._places.get(id(planned))
        if found is None:
            at, numbers = self.addresses.get(id(planned), planned.address), self._numbers
            found = [(index, int(numbers[index]) - at) for index in self._elsewhere.get(id(planned), ())]
            self._places[id(planned)] = found
        return found

    def lend(self, planned: HostStorage, array: NDArray[Any]) -> None:
        """Make all steps read an array instead of the planned storage. It is contiguous, aligned, and the caller's."""
        if id(planned) in self._readers:
            self.replace(planned, HostStorage(array.shape, planned.dtype, array.reshape(-1).view(np.uint8)))
            return
        address = address_of(array)
        for index, first in self._places_of(planned):
            self._numbers[index] = address + first
        self.addresses[id(planned)] = address

    def follow_arena(self) -> NDArray[Any] | None:
        """Update all addresses in the arena to those in the present block, and return its memory."""
        if self._arena is None:
            return None
        block, base = self._arena.block(self._size)
        if base != self._base:
            self._numbers[self._in_arena] += base - self._base
            self._base = base
        if base != self._moved_to:
            for storage in self._moved:
                storage.move_to(block)
            self._moved_to = base
        return block


def _make_late(storages: Sequence[HostStorage]) -> None:
    """Make memory that was put off in several threads, where it is large: NumPy copies without the GIL. Frames go
    first: beside them one thread is enough, which makes it later.
    """
    late = [storage for storage in dict.fromkeys(storages) if storage.is_late]
    if sum(storage.size for storage in late) < MUCH or thread_count() < 2 or is_beside_frames():
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(thread_count(), "perframe-packing") as threads:
        list(threads.map(HostStorage.has_memory, sorted(late, key=lambda storage: -storage.size)))


def whole_of(storage: HostStorage) -> tuple[HostStorage, int]:
    """Return the outermost storage around a storage, or this storage, and the storage's first byte in it, which is
    symbolic during a trace.
    """
    first = 0
    while storage.within is not None:
        storage, more = storage.within
        first += more
    return storage, first


def part_of(whole: HostStorage, first: int, size: int, dtype: DataType) -> HostStorage:
    """Return storage for `size` elements of another storage, from its byte `first` on."""
    begin, length = plain(first), plain(size)
    made = HostStorage((length,), dtype, whole.memory[begin : begin + length * dtype.numpy.itemsize])
    made.within = whole, first
    return made
