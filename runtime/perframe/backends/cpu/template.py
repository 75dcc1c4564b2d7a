"""A program for any sizes: where its numbers, the lengths of its values and its shapes are formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from perframe.backends.cpu import jit
from perframe.backends.cpu.arena import Arena, ArenaStorage, ArenaWorkspace, Life, aligned
from perframe.backends.cpu.bindings import Addresses, Bindings, Ints
from perframe.backends.cpu.late_program import LateProgram
from perframe.backends.cpu.program import CpuProgram, CpuStep, NativeStep, PythonStep
from perframe.backends.cpu.rows import extent
from perframe.tensor import HostStorage, Storage
from perframe.tracing import at_least, is_followed, plain

Storages = Mapping[int, HostStorage]  # by the id of the storage whose place each takes


class CpuTemplate:
    """What was made for one set of sizes, and what of it other sizes change.

    `numbers` lists all that follows from the sizes; `program` takes their values, in this order.
    """

    def __init__(self, program: CpuProgram | LateProgram, workspace: ArenaWorkspace, arena: Arena) -> None:
        self._steps, self._arena, self._known = program.steps, arena, Addresses.of(program.steps)
        self._first: tuple[CpuProgram, Ints] | None = None  # to change, and its numbers
        if isinstance(program, CpuProgram):
            self._first = program, self._numbers()
        self.numbers: list[int] = []
        self._marks, self._ids = workspace.marks, [id(life.storage) for life in workspace.lives]
        lengths = [aligned(life.storage.bytes_followed) for life in workspace.lives]
        begins, size = _laid_out(workspace.lives, lengths)
        self._lengths, self._begins, self._size = self._note(lengths), self._note(begins), self._note([size])
        natives = [(index, step) for index, step in enumerate(program.steps) if isinstance(step, NativeStep)]
        self._natives = np.array([index for index, _ in natives], np.intp)
        self._items = self._note([step.items for _, step in natives])
        self._chunks = self._note([step.chunk for _, step in natives])
        followed = [place for place, number in enumerate(self._known.numbers) if is_followed(number)]
        self._places, self._values = np.array(followed, np.intp), self._note([self._known.numbers[p] for p in followed])
        self._lives = {storage: index for index, storage in enumerate(self._ids)}
        self._in_arena = _Parts(self._known.storages)
        self._in_lives = np.array([self._lives[id(root)] for root in self._in_arena.roots], np.intp)
        self._bound: list[tuple[int, int, int]] | None = None
        self._elsewhere = _Parts([*self._known.others.values()])
        self._pythons = [(index, step) for index, step in enumerate(program.steps) if isinstance(step, PythonStep)]
        self._of_pythons = [
            (_Parts(step.operands), [self._note(shape) for shape in step.shapes]) for _, step in self._pythons
        ]
        for parts in (self._in_arena, self._elsewhere, *(operands for operands, _ in self._of_pythons)):
            parts.noted = self._note(parts.firsts)

    def _note(self, numbers: Sequence[int]) -> slice:
        self.numbers += numbers
        return slice(len(self.numbers) - len(numbers), len(self.numbers))

    @property
    def ready(self) -> bool:
        """Whether all kernels are compiled, so that no program waits for one."""
        return self._first is not None or not jit.busy()

    def _base(self) -> tuple[CpuProgram, Ints]:
        if self._first is None:
            self._first = CpuProgram(self._steps, self._arena), self._numbers()
        return self._first

    def _numbers(self) -> Ints:
        return np.array([plain(number) for number in self._known.numbers], np.int64)

    def program(self, values: Sequence[int], storages: Storages) -> tuple[CpuProgram, ArenaWorkspace]:
        """The program for these values, on these storages in place of those with these ids."""
        array = np.array(values, np.int64)
        base, first = self._base()
        numbers = first.copy()
        numbers[self._places] = array[self._values]
        bound: dict[int, list[int]] = {}
        firsts = values[self._elsewhere.noted]
        for index, planned, root in self._lasting(storages):
            storage, places = storages[root], self._known.elsewhere[planned]
            numbers[places] = storage.address + firsts[index]
            if planned == root:
                bound[id(storage)] = places
        in_arena = array[self._begins][self._in_lives] + array[self._in_arena.noted]
        steps = self._steps
        if self._pythons:
            steps = list(steps)
            begins = dict(zip(self._ids, values[self._begins], strict=True))
            for (index, step), (operands, shapes) in zip(self._pythons, self._of_pythons, strict=True):
                steps[index] = self._again(
                    step, operands, [values[shape] for shape in shapes], values, storages, begins
                )
        bindings = Bindings(steps if self._pythons else (), self._arena, self._known, numbers, in_arena, bound)
        made = base.resized(steps, bindings, self._natives, array[self._items], array[self._chunks])
        return made, ArenaWorkspace(self._arena, values[self._size][0])

    def _lasting(self, storages: Storages) -> list[tuple[int, int, int]]:
        """(index, id, id of the whole one) of what lies elsewhere and is no constant: the same for all sizes."""
        if self._bound is None:
            entries = enumerate(zip(self._known.elsewhere, map(id, self._elsewhere.roots), strict=True))
            self._bound = [(index, planned, root) for index, (planned, root) in entries if root in storages]
        return self._bound

    def live(self, values: Sequence[int]) -> list[int]:
        """For each layer, the bytes of all values within a run while it does."""
        lengths = dict(zip(self._ids, values[self._lengths], strict=True))
        return [sum(lengths[storage] for storage in taken) for taken in self._marks]

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


def _laid_out(lives: Sequence[Life], lengths: Sequence[int]) -> tuple[list[int], int]:
    """Where each value begins, and the end of all, as formulas of their lengths: each lies above those above which it
    lay when the program was made, among those that live with it. That keeps them apart whatever the lengths are.
    """
    order = sorted(range(len(lives)), key=lambda index: lives[index].storage.offset)
    begins, ends = [0] * len(lives), [0] * len(lives)
    all_below: dict[int, set[int]] = {}
    for position, index in enumerate(order):
        life = lives[index]
        meeting = [
            other for other in order[:position] if lives[other].first <= life.last and life.first <= lives[other].last
        ]
        under: set[int] = set().union(*(all_below[other] for other in meeting))
        all_below[index] = under.union(meeting)
        begin = reduce(at_least, [ends[other] for other in meeting if other not in under], 0)
        begins[index], ends[index] = begin, begin + lengths[index]
    tops = set(order).difference(*all_below.values())
    return begins, reduce(at_least, [ends[top] for top in tops], 0)
