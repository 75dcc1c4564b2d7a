"""Where a program's steps find their operands: addresses that change with the inputs of a run, and with the arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.program.arena import Arena, ArenaStorage
from perframe.tensor.storage import HostStorage

Ints = NDArray[np.int64]


class Bound(Protocol):
    """A step, as far as its operands go."""

    @property
    def operands(self) -> list[HostStorage]:
        """What it reads and writes."""

    @property
    def numbers(self) -> Sequence[int] | None:
        """What a kernel reads after their addresses; None for a step in Python."""


@dataclass(frozen=True)
class Addresses:
    """Where, in all steps' numbers, addresses stand: those of the arena's storages in order (from its begin), and by a
    storage's id those of `others`. `starts` says where each step's numbers begin, `size` where the last value in the
    arena ends. `memories` are those of the others: a run may outlive whoever owns them.
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
        """Those of these steps."""
        numbers: list[int] = []
        starts: list[int] = []
        places: list[int] = []
        storages: list[ArenaStorage] = []
        elsewhere: dict[int, list[int]] = {}
        others: dict[int, HostStorage] = {}
        for step in steps:
            starts.append(len(numbers))
            if step.numbers is None:
                continue
            for operand in step.operands:
                if isinstance(operand, ArenaStorage):
                    places.append(len(numbers))
                    storages.append(operand)
                else:
                    elsewhere.setdefault(id(operand), []).append(len(numbers))
                    others[id(operand)] = operand
                numbers.append(operand.offset if isinstance(operand, ArenaStorage) else operand.address)
            numbers += step.numbers
        memories = [operand.memory for operand in others.values()]
        return cls(numbers, starts, np.array(places, np.intp), storages, elsewhere, others, memories)


class Bindings:
    """The numbers of all steps, in one array of a program's, which are those of `known` in order."""

    def __init__(
        self, arena: Arena | None, size: int, known: Addresses, numbers: Ints, elsewhere: Mapping[int, Sequence[int]]
    ) -> None:
        """`size` is what a run needs of the arena; `elsewhere` has the places of what may be replaced. `attach` comes
        next.
        """
        self._readers: dict[int, list[tuple[list[HostStorage], int]]] = {}  # by the planned operand, steps' operands
        self._moved: list[ArenaStorage] = []  # read by steps in Python
        self._numbers, self._in_arena, self._elsewhere = numbers, known.in_arena, elsewhere
        self._bound: dict[int, NDArray[Any]] = {}  # the memory of what took an operand's place lives as long
        self._arena, self._size, self._base, self._moved_to = arena, size, 0, 0

    def attach(self, steps: Sequence[Bound], base: int = 0) -> None:
        """Nothing was replaced, and what is in the arena is where that begins at `base`; all that these steps in Python
        read is to be found.
        """
        self._base, self._moved_to = base, 0
        for step in steps:
            if step.numbers is None:
                self._moved += [operand for operand in step.operands if isinstance(operand, ArenaStorage)]
                for index, operand in enumerate(step.operands):
                    self._readers.setdefault(id(operand), []).append((step.operands, index))

    def replace(self, planned: HostStorage, new: HostStorage) -> None:
        """Read `new` where the plan says `planned`."""
        for place in self._elsewhere.get(id(planned), ()):
            self._numbers[place] = new.address
        for operands, index in self._readers.get(id(planned), ()):
            operands[index] = new
        self._bound[id(planned)] = new.memory

    def follow_arena(self) -> NDArray[Any] | None:
        """See to it that all in the arena is where the arena is now; returns its memory."""
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
