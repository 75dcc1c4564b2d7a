"""Memory for what lives within a run: one block for all plans of a backend, since their runs follow each other."""

from __future__ import annotations

import math
import sys
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from perframe.errors import BackendError, InputError
from perframe.sizes.traced import at_least, plain
from perframe.tensor import DataType, Storage
from perframe.tensor.checks import machine_bytes
from perframe.tensor.guarded import guard
from perframe.tensor.storage import NOWHERE, HostStorage, aligned_bytes

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
WASTE = 1 << 20  # bytes, more than which are worth a plan's time
ROOM = 1 << 20  # bytes at the least that are there for larger plans: what nobody writes to takes no memory


class Arena:
    """The block. It is made when something first runs, as large as the largest plan wants and as much again, which the
    system only gives when it is used; a later plan that wants more than that gets a new one.
    """

    def __init__(self) -> None:
        self.workspaces: list[ArenaWorkspace] = []
        self._place, self._wanted = NOWHERE, 0
        self.address = NOWHERE[1]  # where the memory is now

    def block(self, size: int) -> tuple[NDArray[Any], int]:
        """Memory of so many bytes at least, and its address. Whoever runs on it holds it: a larger one may take its
        place meanwhile, or none, when the last plan leaves.
        """
        place = self._place
        if place[0].size < size or place[0].size < self._wanted:
            place = self._place = NOWHERE  # the old one goes before the new one comes
            wanted = max(size, self._wanted)
            try:
                place = aligned_bytes(wanted + max(ROOM, wanted))
            except BackendError:
                place = aligned_bytes(wanted)
            place[0][: min(4 * wanted, ROOM)] = 0  # who writes to a page first waits for it
            self._place, self.address = place, place[1]
        return place

    def enlarge(self, size: int) -> None:
        """Be at least so large at the next run. Raises InputError for more than the machine has."""
        if size > self._wanted:
            if size > machine_bytes():
                raise InputError(
                    f"the values of a run would take {size} bytes together for these input shapes, and the machine has "
                    f"{machine_bytes()}: run with smaller inputs"
                )
            self._wanted = size

    def leave(self, workspace: ArenaWorkspace) -> None:
        """A plan needs no memory any more; after the last one there is none."""
        if workspace in self.workspaces:
            self.workspaces.remove(workspace)
            if workspace.size == self._wanted:
                self._wanted = max([other.size for other in self.workspaces], default=0)
        if not self.workspaces:
            self._place, self.address = NOWHERE, NOWHERE[1]


class ArenaStorage(HostStorage):
    """A range of the arena. It has values only during a run."""

    def __init__(self, shape: Sequence[int], dtype: DataType, offset: int) -> None:
        super().__init__(shape, dtype, NOWHERE[0])
        self.offset = offset
        self.bytes_followed = math.prod(shape) * dtype.numpy.itemsize  # a formula of the sizes, in a trace
        self._parts: list[tuple[ArenaStorage, int]] = []

    def part(self, first: int, shape: Sequence[int], dtype: DataType) -> ArenaStorage:
        """A value within this one, `first` bytes from its begin."""
        made = ArenaStorage(shape, dtype, self.offset + plain(first))
        made.within = (self, first)
        self._parts.append((made, plain(first)))
        return made

    def lie_at(self, offset: int) -> None:
        """Begin there, with all parts."""
        self.offset = offset
        for part, first in self._parts:
            part.offset = offset + first

    def move_to(self, block: NDArray[Any]) -> None:
        """See the values in this block."""
        end = self.offset + max(1, self.size * self.dtype.numpy.itemsize)
        self.set_memory(block[self.offset : end])


@dataclass
class Life:
    """A value's storage, its bytes, and when it was taken and given back."""

    storage: ArenaStorage
    length: int
    first: int
    last: int = sys.maxsize


def aligned(size: int) -> int:
    """What a value of so many bytes takes."""
    return -(-at_least(size, 1) // ALIGNMENT) * ALIGNMENT


def _lay_out(lives: Sequence[Life]) -> tuple[int, list[int]]:
    """The bytes that values take together, and their offsets: the largest first, each as low as those that live with it
    allow (Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net Inference", greedy by size).
    """
    offsets = [0] * len(lives)
    placed: list[tuple[int, int, Life]] = []  # (begin, end), ascending
    for index in sorted(range(len(lives)), key=lambda index: -lives[index].length):
        life, at = lives[index], 0
        for begin, end, other in placed:
            if other.first <= life.last and life.first <= other.last:
                if begin - at >= life.length:
                    break
                at = max(at, end)
        offsets[index] = at
        insort(placed, (at, at + life.length, life), key=lambda item: item[:2])
    return max((end for _, end, _ in placed), default=0), offsets


class ArenaWorkspace:
    """Where a plan's values lie in the arena: those whose lifetimes do not meet share memory.

    Values come and go in the order of the plan's steps. Each takes the smallest hole that is large enough, which costs
    a plan next to nothing; where that wastes much, all are laid out anew when their lifetimes are known.
    """

    def __init__(self, arena: Arena, size: int = 0) -> None:
        """`size` says how many bytes it wants, where that is known. Raises InputError for more than the machine has."""
        arena.enlarge(size)
        self._arena = arena
        self._holes: list[tuple[int, int]] = []  # (begin, end), ascending, none next to another
        self._taken: dict[int, Life] = {}  # by the storage
        self.lives: list[Life] = []  # in the order in which they were taken
        self.marks: list[list[int]] = []  # what is taken while each layer runs, by the storage
        self._now = self._most = 0
        self._scratch: list[Storage] = []
        self.own: list[tuple[HostStorage, Sequence[int]]] = []  # values in guarded memory, which is nobody else's
        self.size, self.used = size, 0
        arena.workspaces.append(self)

    def take(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Storage until it is given back."""
        if dtype is DataType.STRING:
            return HostStorage(shape, dtype)
        if guard():
            self.own.append((HostStorage(shape, dtype), shape))
            return self.own[-1][0]
        storage = ArenaStorage(shape, dtype, 0)
        length = aligned(storage.size * dtype.numpy.itemsize)
        fitting = [(end - begin, begin, end) for begin, end in self._holes if end - begin >= length]
        if fitting:
            _, begin, end = min(fitting)
            self._holes.remove((begin, end))
            if end - begin > length:
                insort(self._holes, (begin + length, end))
        else:
            begin = self._holes.pop()[0] if self._holes and self._holes[-1][1] == self.size else self.size
            self.size = begin + length
        self.used += length
        self._most = max(self._most, self.used)
        storage.offset = begin
        self._now += 1
        self.lives.append(Life(storage, length, self._now))
        self._taken[id(storage)] = self.lives[-1]
        return storage

    def give_back(self, storage: Storage) -> None:
        """Nothing reads its values any more."""
        life = self._taken.pop(id(storage), None)
        if life is None:
            return
        life.last = self._now
        self.used -= life.length
        begin, end = life.storage.offset, life.storage.offset + life.length
        before = next((hole for hole in self._holes if hole[1] == begin), None)
        after = next((hole for hole in self._holes if hole[0] == end), None)
        for hole in (before, after):
            if hole is not None:
                self._holes.remove(hole)
        insort(self._holes, (before[0] if before else begin, after[1] if after else end))

    def scratch(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Storage between the steps of one layer."""
        self._scratch.append(self.take(shape, dtype))
        return self._scratch[-1]

    def end_layer(self) -> None:
        """The layer's steps are all there."""
        self.marks.append(list(self._taken))
        while self._scratch:
            self.give_back(self._scratch.pop())

    def end_plan(self) -> None:
        """Nothing more will be taken."""
        if self.size - self._most > WASTE:
            size, offsets = _lay_out(self.lives)
            if size < self.size:
                self.size = size
                for life, offset in zip(self.lives, offsets, strict=True):
                    life.storage.lie_at(offset)
        self._arena.enlarge(self.size)

    def release(self) -> None:
        """Leave the arena to the other plans."""
        self._arena.leave(self)
