"""A program for any sizes: where its numbers, the lengths of its values and its shapes are formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perframe.backends.cpu.arena import Arena, ArenaStorage, ArenaWorkspace, Life, aligned
from perframe.backends.cpu.bindings import Bindings
from perframe.backends.cpu.program import CpuProgram, CpuStep, NativeStep, PythonStep
from perframe.backends.cpu.rows import extent
from perframe.tensor import HostStorage, Storage
from perframe.tracing import is_followed, plain

Storages = Mapping[int, HostStorage]  # by the id of the storage whose place each takes


class CpuTemplate:
    """What was made for one set of sizes, and what of it other sizes change.

    `numbers` lists all that follows from the sizes; `program` takes their values, in this order.
    """

    def __init__(self, program: CpuProgram, workspace: ArenaWorkspace, arena: Arena) -> None:
        self._made, self._arena, self._known = program, arena, program.known
        self.numbers: list[int] = []
        self._lives = workspace.lives
        self._lengths = self._note([life.storage.bytes_followed for life in self._lives])
        self._below = _orders(self._lives)
        natives = [(index, step) for index, step in enumerate(program.steps) if isinstance(step, NativeStep)]
        self._natives = [index for index, _ in natives]
        self._items = self._note([step.items for _, step in natives])
        self._grains = self._note([step.grain for _, step in natives])
        self._base = np.array([plain(number) for number in self._known.numbers], np.int64)
        self._places = [place for place, number in enumerate(self._known.numbers) if is_followed(number)]
        self._values = self._note([self._known.numbers[place] for place in self._places])
        self._marks = workspace.marks
        self._ids = [id(life.storage) for life in self._lives]
        self._in_arena = _Parts(self._known.storages)
        self._elsewhere = _Parts([*self._known.others.values()])
        self._pythons = [(index, step) for index, step in enumerate(program.steps) if isinstance(step, PythonStep)]
        self._of_pythons = [
            (_Parts(step.operands), [self._note(shape) for shape in step.shapes]) for _, step in self._pythons
        ]
        parts = [self._in_arena, self._elsewhere, *(operands for operands, _ in self._of_pythons)]
        for one in parts:
            one.noted = self._note(one.firsts)

    def _note(self, numbers: Sequence[int]) -> slice:
        self.numbers += numbers
        return slice(len(self.numbers) - len(numbers), len(self.numbers))

    def program(self, values: Sequence[int], storages: Storages) -> tuple[CpuProgram, ArenaWorkspace]:
        """The program for these values, on these storages in place of those with these ids."""
        begins, size = self._laid_out(values[self._lengths])
        numbers = self._base.copy()
        numbers[self._places] = values[self._values]
        bound: dict[int, list[int]] = {}
        for (planned, places), root, first in zip(
            self._known.elsewhere.items(), self._elsewhere.roots, values[self._elsewhere.noted], strict=True
        ):
            storage = storages.get(id(root))
            if storage is not None:
                numbers[places] = storage.address + first
                if id(root) == planned:
                    bound[id(storage)] = places
        offsets = [begins[id(root)] for root in self._in_arena.roots]
        in_arena = np.array(offsets, np.int64) + np.array(values[self._in_arena.noted], np.int64)
        steps = list(self._made.steps)
        for (index, step), (operands, shapes) in zip(self._pythons, self._of_pythons, strict=True):
            steps[index] = self._again(step, operands, [values[shape] for shape in shapes], values, storages, begins)
        work = np.zeros((2, len(steps)), np.int64)
        work[:, self._natives] = values[self._items], values[self._grains]
        bindings = Bindings(steps, self._arena, self._known, numbers, in_arena, bound)
        return self._made.resized(steps, bindings, *work), ArenaWorkspace(self._arena, size)

    def live(self, values: Sequence[int]) -> list[int]:
        """For each layer, the bytes of all values within a run while it does."""
        lengths = dict(zip(self._ids, map(aligned, values[self._lengths]), strict=True))
        return [sum(lengths[storage] for storage in taken) for taken in self._marks]

    def _laid_out(self, lengths: Sequence[int]) -> tuple[dict[int, int], int]:
        """Each value above those that it lay above when the program was made: where it begins, by its storage's id, and
        the end of all.
        """
        begins: dict[int, int] = {}
        ends: list[int] = [0] * len(lengths)
        for index, below in self._below:
            begin = begins[self._ids[index]] = max([ends[other] for other in below], default=0)
            ends[index] = begin + aligned(lengths[index])
        return begins, max(ends, default=0)

    def _again(
        self,
        step: PythonStep,
        operands: _Parts,
        shapes: Sequence[Sequence[int]],
        values: Sequence[int],
        storages: Storages,
        begins: Mapping[int, int],
    ) -> CpuStep:
        """A step in Python for these values: each shape has the pitch of its rows with it."""
        made: list[Storage] = []
        for operand, root, first, (*shape, pitch) in zip(
            step.operands, operands.roots, values[operands.noted], shapes, strict=True
        ):
            size = extent(shape, pitch)
            storage = storages.get(id(root))
            if isinstance(root, ArenaStorage):
                made.append(ArenaStorage((size,), operand.dtype, begins[id(root)] + first))
            elif storage is not None and operand is not root:
                end = first + size * operand.dtype.numpy.itemsize
                made.append(HostStorage((size,), operand.dtype, storage.memory[first:end]))
            else:
                made.append(storage or operand)
        assert step.again is not None
        return step.again(shapes, made)


class _Parts:
    """Of some storages: the whole ones in which they lie (themselves, if in no other), and their first bytes there."""

    noted: slice  # where the first bytes' values are

    def __init__(self, storages: Sequence[HostStorage]) -> None:
        self.roots: list[HostStorage] = []
        self.firsts: list[int] = []
        for storage in storages:
            first = 0
            while storage.within is not None:
                storage, more = storage.within
                first += more
            self.roots.append(storage)
            self.firsts.append(first)


def _orders(lives: Sequence[Life]) -> list[tuple[int, list[int]]]:
    """For each value, the lowest first, those that live with it and lie next below: what keeps all apart whatever
    their lengths are.
    """
    order = sorted(range(len(lives)), key=lambda index: lives[index].storage.offset)
    made: list[tuple[int, list[int]]] = []
    all_below: dict[int, set[int]] = {}
    for position, index in enumerate(order):
        life = lives[index]
        meeting = [
            other for other in order[:position] if lives[other].first <= life.last and life.first <= lives[other].last
        ]
        under: set[int] = set().union(*(all_below[other] for other in meeting))
        all_below[index] = under.union(meeting)
        made.append((index, [other for other in meeting if other not in under]))
    return made
