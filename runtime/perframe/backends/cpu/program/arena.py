"""Memory for the values within a run. All plans of a backend share one block, since their runs follow each other."""

from __future__ import annotations

import math
import sys
from bisect import insort
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from perframe.errors import BackendError, InputError
from perframe.ir.sizes.size import at_least, plain
from perframe.safety.records import dataclass
from perframe.tensor import DataType, Storage
from perframe.tensor.checks import machine_bytes
from perframe.tensor.guarded import guard
from perframe.tensor.locks import new_lock
from perframe.tensor.memory import counted_bytes, ledger
from perframe.tensor.storage import NOWHERE, HostStorage, aligned_bytes

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
WASTE = 1 << 20  # bytes: more waste than this is worth a second layout
ROOM = 1 << 20  # spare bytes for larger plans, at least; pages that no step writes take no memory


class Arena:
    """The block of memory that all plans share.

    The first run allocates it, with twice the bytes that the largest plan needs: the system provides the spare pages
    only when a step writes to them. A later plan that needs more gets a new block.
    """

    def __init__(self) -> None:
        self.workspaces: list[ArenaWorkspace] = []
        self._block, self._wanted = NOWHERE, 0
        self.address = NOWHERE[1]  # the present block's
        self._lock = new_lock()  # of the thread that allocates: runs begin in jobs, and in `begin`

    def block(self, size: int) -> tuple[NDArray[Any], int]:
        """Return memory of at least `size` bytes, and its address. The caller must hold the memory during its run: a
        larger block may replace it meanwhile, and the arena drops it when the last plan leaves.
        """
        block = self._block
        if block[0].size < size or (block[0].size < self._wanted and self._fits(self._wanted)):
            with self._lock:
                if self._block is block:
                    self._allocate(size)
                block = self._block
        return block

    @property
    def held_bytes(self) -> int:
        """The bytes that count as held."""
        return counted_bytes(self._block[0])

    def _fits(self, size: int) -> bool:
        return ledger.fits(self._growth(size))

    def _growth(self, size: int) -> int:
        """The bytes more that a block of this size takes."""
        return size + ALIGNMENT - self.held_bytes

    def _allocate(self, size: int) -> None:
        wanted = max(size, self._wanted)
        if not self._fits(wanted):
            wanted = size
            ledger.require(self._growth(size), "the values of a run")
        self._block = NOWHERE  # free the old block before allocating the new one
        room = wanted + max(ROOM, wanted)
        try:
            block = aligned_bytes(room if ledger.least == math.inf else wanted)
        except BackendError:
            block = aligned_bytes(wanted)
        block[0][: min(4 * wanted, ROOM)] = 0  # the first write to a page waits for the system
        self._block, self.address = block, block[1]

    def enlarge(self, size: int) -> None:
        """Reserve at least `size` bytes for the next run. Raises InputError for more bytes than the machine has."""
        if size > self._wanted:
            if size > machine_bytes():
                raise InputError(
                    f"the values of a run would take {size} bytes together for these input shapes, and the machine has "
                    f"{machine_bytes()}: run with smaller inputs"
                )
            self._wanted = size

    def shrink(self) -> None:
        """Reserve no more bytes than the workspaces have."""
        self._wanted = max([other.size for other in self.workspaces], default=0)

    def leave(self, workspace: ArenaWorkspace) -> None:
        """Remove a plan's workspace. The last one to leave drops the block."""
        if workspace in self.workspaces:
            self.workspaces.remove(workspace)
            self.shrink()
        if not self.workspaces:
            self._block, self.address = NOWHERE, NOWHERE[1]


class ArenaStorage(HostStorage):
    """A range of the arena. It holds values only during a run."""

    def __init__(self, shape: Sequence[int], dtype: DataType, offset: int) -> None:
        super().__init__((plain(math.prod(shape)),), dtype, NOWHERE[0])
        self.offset = offset
        self.bytes_followed = math.prod(shape) * dtype.numpy.itemsize  # arithmetic of sizes, during a trace
        self._parts: list[tuple[ArenaStorage, int]] = []

    def part(self, first: int, shape: Sequence[int], dtype: DataType) -> ArenaStorage:
        """Return storage for a value within this one, `first` bytes from its begin."""
        made = ArenaStorage(shape, dtype, self.offset + plain(first))
        made.within = (self, first)
        self._parts.append((made, plain(first)))
        return made

    def lie_at(self, offset: int) -> None:
        """Move this storage and its parts to an offset in the arena."""
        self.offset = offset
        for part, first in self._parts:
            part.offset = offset + first

    def move_to(self, block: NDArray[Any]) -> None:
        """Use this block's memory from now on."""
        end = self.offset + max(1, self.size * self.dtype.numpy.itemsize)
        self.set_memory(block[self.offset : end])


@dataclass
class Life:
    """A value's storage, its bytes, and the times at which it was taken and given back."""

    storage: ArenaStorage
    length: int
    first: int
    last: int = sys.maxsize


def aligned(size: int) -> int:
    """Return the bytes that a value of `size` bytes takes in the arena."""
    return -(-at_least(size, 1) // ALIGNMENT) * ALIGNMENT


def _lay_out(lives: Sequence[Life]) -> tuple[int, list[int]]:
    """Return the bytes that the values take together, and their offsets.

    Larger values come first. Each value takes the lowest offset that the values with overlapping lifetimes leave free
    (Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net Inference", greedy by size).
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
    """Gives a plan's values offsets in the arena. Values whose lifetimes do not meet share memory.

    Values come and go in the order of the plan's steps. Each value takes the smallest hole that is large enough, which
    costs almost no time. If that wastes much memory, `end_plan` lays out all values again with their lifetimes known.
    """

    def __init__(self, arena: Arena, size: int = 0) -> None:
        """`size` is the number of bytes, if it is known. Raises InputError for more bytes than the machine has."""
        arena.enlarge(size)
        self._arena = arena
        self._holes: list[tuple[int, int]] = []  # (begin, end), ascending, never adjacent
        self._taken: dict[int, Life] = {}  # by the storage
        self.lives: list[Life] = []  # in the order in which they were taken
        self.marks: list[list[int]] = []  # for each layer, the ids of the storages that are taken while it runs
        self._now = self._most = 0
        self._scratch: list[Storage] = []
        self.own: list[tuple[HostStorage, Sequence[int]]] = []  # values in guarded memory, outside the arena
        self.size, self.used = size, 0
        arena.workspaces.append(self)

    def take(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> Storage:
        """Take storage for a value, until `give_back`."""
        if dtype is DataType.STRING:
            return HostStorage(shape, dtype)
        if guard():
            self.own.append((HostStorage((plain(math.prod(shape)),), dtype), shape))
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
        """Give back storage whose values no later step reads."""
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
        """Take storage until the end of the layer, for values between its steps."""
        self._scratch.append(self.take(shape, dtype))
        return self._scratch[-1]

    def end_layer(self) -> None:
        """Note the end of a layer, and give back its scratch."""
        self.marks.append(list(self._taken))
        while self._scratch:
            self.give_back(self._scratch.pop())

    def end_plan(self) -> None:
        """Fix the layout: no more storage will be taken."""
        if self.size - self._most > WASTE:
            size, offsets = _lay_out(self.lives)
            if size < self.size:
                self.size = size
                for life, offset in zip(self.lives, offsets, strict=True):
                    life.storage.lie_at(offset)
        self._arena.enlarge(self.size)

    def resize(self, size: int) -> None:
        """Take another number of bytes. Raises InputError for more bytes than the machine has, and MemoryLimitError."""
        self._arena.enlarge(size)
        try:
            self._arena.block(size)
        except BaseException:
            self._arena.shrink()
            raise
        self.size = size

    def begin(self) -> None:
        """Allocate the memory here, where an error stops the run. Raises MemoryLimitError."""
        self._arena.block(self.size)

    def held(self) -> list[tuple[int, int]]:
        """The id of the arena, and its bytes."""
        return [(id(self._arena), self._arena.held_bytes)]

    def release(self) -> None:
        """Remove the workspace from the arena."""
        self._arena.leave(self)
