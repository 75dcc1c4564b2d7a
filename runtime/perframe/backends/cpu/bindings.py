"""Where a program's steps find their operands: addresses that change with the inputs of a run, and with the arena."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.arena import Arena, ArenaStorage
from perframe.storage import HostStorage, address_of


class Bound(Protocol):
    """A step, as far as its operands go."""

    @property
    def operands(self) -> list[HostStorage]:
        """What it reads and writes."""

    @property
    def numbers(self) -> Sequence[int] | None:
        """What a kernel reads after their addresses; None for a step in Python."""


class Bindings:
    """All steps' numbers in one array. `addresses` says where each step's begin."""

    def __init__(self, steps: Sequence[Bound], arena: Arena | None) -> None:
        numbers: list[int] = []
        starts: list[int] = []
        places: list[int] = []
        offsets: list[int] = []
        self._readers: dict[int, list[tuple[list[HostStorage], int]]] = {}  # by the planned operand, steps' operands
        self._places: dict[int, list[int]] = {}  # by the planned operand, where `numbers` has its address
        self._bound: dict[int, HostStorage] = {}  # what took an operand's place lives as long
        self._moved: list[ArenaStorage] = []  # read by steps in Python
        for step in steps:
            starts.append(len(numbers))
            if step.numbers is None:
                self._moved += [operand for operand in step.operands if isinstance(operand, ArenaStorage)]
                for index, operand in enumerate(step.operands):
                    self._readers.setdefault(id(operand), []).append((step.operands, index))
                continue
            for operand in step.operands:
                if isinstance(operand, ArenaStorage):
                    places.append(len(numbers))
                    offsets.append(operand.offset)
                else:
                    self._places.setdefault(id(operand), []).append(len(numbers))
                numbers.append(operand.address)
            numbers += step.numbers
        self._numbers = np.array(numbers, np.int64)
        first = address_of(self._numbers)
        self.addresses = [first + 8 * start for start in starts]
        self._arena = arena if places or self._moved else None
        self._in_arena, self._offsets = np.array(places, np.intp), np.array(offsets, np.int64)
        self._base = 0

    def replace(self, planned: HostStorage, new: HostStorage) -> None:
        """Read `new` where the plan says `planned`."""
        for place in self._places.get(id(planned), ()):
            self._numbers[place] = new.address
        for operands, index in self._readers.get(id(planned), ()):
            operands[index] = new
        self._bound[id(planned)] = new

    def settle(self) -> NDArray[Any] | None:
        """See to it that all in the arena is where the arena is now; returns its memory."""
        if self._arena is None:
            return None
        block = self._arena.block()
        base = address_of(block)
        if base != self._base:
            self._numbers[self._in_arena] = self._offsets + base
            for storage in self._moved:
                storage.move_to(block)
            self._base = base
        return block
