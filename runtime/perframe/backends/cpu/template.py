"""A program for any sizes: where its numbers, the lengths of its values and its shapes are formulas."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.base import Program
from perframe.backends.cpu import helpers, jit
from perframe.backends.cpu.arena import Arena, ArenaStorage, ArenaWorkspace, Life, aligned
from perframe.backends.cpu.bindings import Addresses, Bindings, Ints
from perframe.backends.cpu.evaluator import Evaluator
from perframe.backends.cpu.kernels import team
from perframe.backends.cpu.late_program import LateProgram
from perframe.backends.cpu.program import CpuProgram, CpuStep, NativeStep, PythonStep, Table, numbers_begin
from perframe.backends.cpu.rows import extent
from perframe.storage import address_of
from perframe.tensor import HostStorage, Storage
from perframe.tracing import Trace, at_least, is_followed, plain

MAX_KEPT = 1 << 16  # elements of an input or output for which a program that is not used keeps memory

# where a block has what is added to its words: nothing, the arena's address, from the third on those of the storages,
# and then, negative, how many elements these have room for
NOTHING, ARENA, STORAGES = range(3)
Storages = Mapping[int, HostStorage]  # by the id of the storage whose place each takes


class CpuTemplate:
    """What was made for one set of sizes, and what of it other sizes change.

    A program for other sizes has a block of words: where things are, then the results that Python reads, then the words
    of the program. These are the first program's, but for those that are formulas, to which an address may be added.
    """

    def __init__(
        self,
        program: CpuProgram | LateProgram,
        workspace: ArenaWorkspace,
        arena: Arena,
        trace: Trace,
        results: Sequence[int],
        shapes: Mapping[int, slice],
    ) -> None:
        self.steps, self.arena, self.known = program.steps, arena, Addresses.of(program.steps)
        self._first = program if isinstance(program, CpuProgram) else None
        self._results: list[int] = []
        self._note(results)  # first, for whoever asked for them
        self.sizes = self._note(trace.sizes)
        self.shapes, self._slots = shapes, {planned: STORAGES + slot for slot, planned in enumerate(shapes)}
        lengths = [aligned(life.storage.bytes_followed) for life in workspace.lives]
        begins, size = _laid_out(workspace.lives, lengths)
        self._marks, self._ids = workspace.marks, [id(life.storage) for life in workspace.lives]
        self._begins = dict(zip(self._ids, begins, strict=True))
        self.size = self._note([size]).start
        natives = [(index, step) for index, step in enumerate(self.steps) if isinstance(step, NativeStep)]
        # items beyond a thread's chunk: none, where no step is split
        self.beyond = self._note([reduce(at_least, [step.items - step.chunk for _, step in natives], 0)]).start
        self.pythons = [
            (index, step, self._operands_of(step))
            for index, step in enumerate(self.steps)
            if isinstance(step, PythonStep)
        ]
        self.tables = self._tables_of(natives)
        # elements for which the storages have no room
        self.lacking = self._note([math.prod(results[where]) for where in shapes.values()])
        self.given, self.results = STORAGES + 2 * len(shapes), [plain(number) for number in self._results]
        self.words, self.numbers = self.given + len(self.results), numbers_begin(self.steps)
        placed = self._placed(natives)
        self._formulas = trace.formulas([*(number for _, number, _ in placed), *lengths])
        self.evaluator = Evaluator(self._formulas, [(place, added) for place, _, added in placed])

    # --- what is made once ---

    def _note(self, numbers: Sequence[int]) -> slice:
        self._results += numbers
        return slice(len(self._results) - len(numbers), len(self._results))

    def _operands_of(self, step: PythonStep) -> list[tuple[HostStorage, slice]]:
        """Of each operand, in which storage it lies, and the results that say from where on, its shape and pitch."""
        parts = _Parts(step.operands)
        return [
            (root, self._note([first + self._begins.get(id(root), 0), *shape]))
            for root, first, shape in zip(parts.roots, parts.firsts, step.shapes, strict=True)
        ]

    def _tables_of(self, natives: Sequence[tuple[int, NativeStep]]) -> list[tuple[int, Table, list[tuple[int, int]]]]:
        """(its number's place, table, which of its arguments are which results) of those that follow from sizes."""
        found = []
        for index, step in natives:
            for place, table in enumerate(step.tables, self.known.starts[index] + len(step.operands)):
                followed = [at for at, argument in enumerate(table.arguments) if is_followed(argument)]
                if followed:
                    noted = self._note([table.arguments[at] for at in followed])
                    found.append((place, table, [*zip(followed, range(noted.start, noted.stop), strict=True)]))
        return found

    def _placed(self, natives: Sequence[tuple[int, NativeStep]]) -> list[tuple[int, int, int]]:
        """(place in the block, formula, place of what is added to it) of all that follows from sizes."""
        known, begin = self.known, self.words + self.numbers
        found = [(place, number, NOTHING) for place, number in enumerate(self._results, self.given)]
        for index, step in natives:
            row = self.words + team.PROGRAM + team.ROW * index
            found += [(row + team.ITEMS, step.items, NOTHING), (row + team.CHUNK, step.chunk, NOTHING)]
        found += [(begin + place, number, NOTHING) for place, number in enumerate(known.numbers)]
        found = [one for one in found if is_followed(one[1])]
        rooms = zip(range(self.lacking.start, self.lacking.stop), self._slots.values(), strict=True)
        found += [(self.given + place, self._results[place], slot + len(self._slots)) for place, slot in rooms]
        parts = _Parts(known.storages)
        for place, root, first in zip(known.in_arena.tolist(), parts.roots, parts.firsts, strict=True):
            found.append((begin + place, self._begins[id(root)] + first, ARENA))
        elsewhere = _Parts([*known.others.values()])
        for places, root, first in zip(known.elsewhere.values(), elsewhere.roots, elsewhere.firsts, strict=True):
            if id(root) in self._slots:  # and no constant
                found += [(begin + place, first, self._slots[id(root)]) for place in places]
        return found

    @property
    def first(self) -> CpuProgram | None:
        """The program that was made first; None while kernels are being compiled."""
        if self._first is None and not jit.busy():
            self._first = CpuProgram(self.steps, self.arena)
        return self._first

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether it is the program for these sizes; known before its kernels are there."""
        return self._formulas.evaluate(sizes) is not None

    def blank(self, storages: Mapping[int, Storage]) -> SizedProgram | None:
        """A program to be fitted to sizes, on these storages; None while kernels are being compiled."""
        first = self.first
        if first is None or not self.evaluator.ready:
            return None
        helpers.team()  # whose threads should not begin within a frame
        return SizedProgram(self, first, {key: s for key, s in storages.items() if isinstance(s, HostStorage)})

    def live(self, sizes: Sequence[int]) -> list[int]:
        """For each layer, the bytes of all values within a run while it does."""
        found = self._formulas.evaluate(sizes)
        assert found is not None
        lengths = dict(zip(self._ids, found[len(found) - len(self._ids) :], strict=True))
        return [sum(lengths[storage] for storage in taken) for taken in self._marks]


class SizedProgram:
    """A program that can be fitted to sizes again and again, while none of its runs is under way."""

    def __init__(self, template: CpuTemplate, first: CpuProgram, storages: Storages) -> None:
        self._template, self._storages = template, storages
        words = np.concatenate([np.zeros(template.given, np.int64), template.results, first.words])
        self._begin = address_of(words)
        own = words[template.words :]
        own[team.TEAM] = 0  # the first one may be running
        rows = own[team.PROGRAM : template.numbers].reshape(-1, team.ROW)
        moved = address_of(own) - address_of(first.words)
        own[team.TABLE] += moved
        rows[:, team.NUMBERS] += moved
        self._numbers = own[template.numbers :]
        self._given, self._results = _shared(words[: template.given]), _shared(words[template.given : template.words])
        self._values: list[int] = []
        self.program = first.again(own)
        self._own, known = [storages[planned] for planned in template.shapes], template.known
        places = {id(storages[planned]): known.elsewhere.get(planned, []) for planned in template.shapes}
        self.program.bindings = Bindings(template.arena, known, self._numbers, places)
        self.workspace = ArenaWorkspace(template.arena)
        self.workspace.release()  # until it is fitted
        self._find()

    def fit(self, like: Program | None, size: int) -> list[int]:
        """What the template was asked for, for the sizes for which it was chosen last. A run is expected to take as
        long as one of a program like this with so many bytes of values, twice as long with four times as many: the
        weights are read in the same time.
        """
        template, base = self._template, self._template.arena.address
        self._given[ARENA] = base
        template.evaluator.place(self._begin)
        self._values = values = self._results[:]
        wanted = values[template.size]
        self.workspace.take_part(wanted)
        for lacking in values[template.lacking]:
            if lacking > 0:
                self._grow()
                break
        self.program.bindings.begin(self._remade() if template.tables or template.pythons else (), base)
        expected = like.nanoseconds if isinstance(like, CpuProgram) else None
        if expected is not None and wanted >= 4 * size > 0:
            expected <<= ((wanted // size).bit_length() - 1) // 2
        self.program.begin(values[template.beyond] > 0, expected)
        return values

    def _grow(self) -> None:
        """Have room in all storages."""
        for storage, lacking in zip(self._own, self._values[self._template.lacking], strict=True):
            if lacking > 0:
                storage.grow(storage.size + lacking)
        self._find()
        self._template.evaluator.place(self._begin)

    def _find(self) -> None:
        """Have in the block where the storages are, and what they have room for."""
        rooms = [-storage.size for storage in self._own]
        self._given[STORAGES:] = [*(storage.address for storage in self._own), *rooms]

    def _remade(self) -> Sequence[CpuStep]:
        """Make what formulas of sizes cannot tell: tables, and steps in Python."""
        template = self._template
        self._tables = [self._table(table, arguments) for _, table, arguments in template.tables]
        for (place, _, _), array in zip(template.tables, self._tables, strict=True):
            self._numbers[place] = address_of(array)
        if not template.pythons:
            return ()
        self.program.steps = list(template.steps)
        for index, step, operands in template.pythons:
            self.program.steps[index] = self._again(step, operands)
        return self.program.steps

    def live(self) -> list[int]:
        """For each layer, the bytes of all values within a run while it does."""
        return self._template.live(self._values[self._template.sizes])

    def release(self) -> None:
        """Hold nothing for these sizes any more, but for the workspace."""
        self.program.bindings.forget()
        for storage in self._own:
            if storage.size > MAX_KEPT:
                storage.release()
        self._find()

    def _table(self, table: Table, followed: Sequence[tuple[int, int]]) -> NDArray[Any]:
        """A table for these sizes."""
        arguments = list(table.arguments)
        for at, result in followed:
            arguments[at] = self._values[result]
        return table.make(*arguments)

    def _again(self, step: PythonStep, operands: Sequence[tuple[HostStorage, slice]]) -> CpuStep:
        """A step in Python for these sizes."""
        made: list[Storage] = []
        shapes: list[Sequence[int]] = []
        for operand, (root, where) in zip(step.operands, operands, strict=True):
            first, *shape, pitch = self._values[where]
            shapes.append((*shape, pitch))
            size = extent(shape, pitch)
            storage = self._storages.get(id(root))
            if isinstance(root, ArenaStorage):
                made.append(ArenaStorage((size,), operand.dtype, first))
            elif storage is not None and operand is not root:
                end = first + size * operand.dtype.numpy.itemsize
                made.append(HostStorage((size,), operand.dtype, storage.memory[first:end]))
            else:
                made.append(storage or operand)
        assert step.again is not None
        return step.again(shapes, made)


def _shared(words: Ints) -> Any:
    """The same words as an array of ctypes, whose single numbers and ranges are ints of Python's."""
    return (ctypes.c_int64 * len(words)).from_buffer(words)  # type: ignore[arg-type]  # NumPy arrays are buffers


class _Parts:
    """Of some storages: the whole ones in which they lie (themselves, if in no other), and their first bytes there."""

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
