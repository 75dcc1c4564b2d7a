"""A program for any sizes: where its numbers, the lengths of its values and its shapes are formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.base import Program
from perframe.backends.cpu import helpers, jit
from perframe.backends.cpu.arena import Arena, ArenaStorage, ArenaWorkspace, Life, aligned
from perframe.backends.cpu.bindings import Addresses, Bindings
from perframe.backends.cpu.evaluator import Evaluator
from perframe.backends.cpu.kernels import team
from perframe.backends.cpu.late_program import LateProgram
from perframe.backends.cpu.program import CpuProgram, CpuStep, NativeStep, PythonStep, Table, numbers_begin
from perframe.backends.cpu.rows import extent
from perframe.storage import address_of
from perframe.tensor import HostStorage, Storage
from perframe.tracing import Trace, at_least, is_followed

MAX_KEPT = 1 << 16  # elements of an input or output for which a program that is not used keeps memory

Storages = Mapping[int, HostStorage]  # by the id of the storage whose place each takes


class CpuTemplate:
    """What was made for one set of sizes, and what of it other sizes change.

    The words of a program for other sizes are those of this one, but for those that are formulas: addresses too, which
    follow from where the words begin, and the arena. Before them stand the results that Python reads.
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
        self.shapes = shapes
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
        self.numbers = numbers_begin(self.steps)
        filled = self._filled(trace, natives)
        self._formulas = trace.formulas([*self._results, *filled.values(), *lengths])
        self.count = len(self._results)
        places = [*range(self.count), *(self.count + place for place in filled)]
        self.evaluator = Evaluator(self._formulas, places)

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

    def _filled(self, trace: Trace, natives: Sequence[tuple[int, NativeStep]]) -> dict[int, int]:
        """The words that are formulas."""
        known, begin, base = self.known, trace.unknown(), trace.unknown()
        lasting = {planned: trace.unknown() for planned in self.shapes}
        filled = {team.TABLE: begin + 8 * team.PROGRAM}
        for index, start in enumerate(known.starts):
            filled[team.PROGRAM + team.ROW * index + team.NUMBERS] = begin + 8 * (self.numbers + start)
        for index, step in natives:
            row = team.PROGRAM + team.ROW * index
            filled[row + team.ITEMS], filled[row + team.CHUNK] = step.items, step.chunk
        filled |= {self.numbers + place: number for place, number in enumerate(known.numbers) if is_followed(number)}
        parts = _Parts(known.storages)
        for place, root, first in zip(known.in_arena.tolist(), parts.roots, parts.firsts, strict=True):
            filled[self.numbers + place] = base + self._begins[id(root)] + first
        elsewhere = _Parts([*known.others.values()])
        for places, root, first in zip(known.elsewhere.values(), elsewhere.roots, elsewhere.firsts, strict=True):
            if id(root) in lasting:  # and no constant
                filled |= {self.numbers + place: lasting[id(root)] + first for place in places}
        return filled

    @property
    def first(self) -> CpuProgram | None:
        """The program that was made first; None while kernels are being compiled."""
        if self._first is None and not jit.busy():
            self._first = CpuProgram(self.steps, self.arena)
        return self._first

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether it is the program for these sizes; known before its kernels are there."""
        return self._evaluated(sizes) is not None

    def _evaluated(self, sizes: Sequence[int]) -> list[int] | None:
        """All results, wherever things lie."""
        return self._formulas.evaluate([*sizes, *[0] * (self._formulas.inputs - len(sizes))])

    def blank(self, storages: Mapping[int, Storage]) -> SizedProgram | None:
        """A program to be fitted to sizes, on these storages; None while kernels are being compiled."""
        first = self.first
        if first is None or not self.evaluator.ready:
            return None
        helpers.team()  # whose threads should not begin within a frame
        return SizedProgram(self, first, {key: s for key, s in storages.items() if isinstance(s, HostStorage)})

    def live(self, sizes: Sequence[int]) -> list[int]:
        """For each layer, the bytes of all values within a run while it does."""
        found = self._evaluated(sizes)
        assert found is not None
        lengths = dict(zip(self._ids, found[len(found) - len(self._ids) :], strict=True))
        return [sum(lengths[storage] for storage in taken) for taken in self._marks]


class SizedProgram:
    """A program that can be fitted to sizes again and again, while none of its runs is under way."""

    def __init__(self, template: CpuTemplate, first: CpuProgram, storages: Storages) -> None:
        self._template, self._storages = template, storages
        words = np.concatenate([np.zeros(template.count, np.int64), first.words])
        words[template.count + team.TEAM] = 0  # the first one may be running
        self._results, self._begin = words[: template.count], address_of(words)
        self._program_begin = self._begin + 8 * template.count
        self._numbers = numbers = words[template.count + template.numbers :]
        self._values: list[int] = []
        self._sizes: Sequence[int] = ()
        self.program = first.again(words[template.count :])
        self._resized = [(storages[planned], where) for planned, where in template.shapes.items()]
        known = template.known
        places = {id(storages[planned]): known.elsewhere.get(planned, []) for planned in template.shapes}
        self.program.bindings = Bindings(template.arena, known, numbers, places)
        self.workspace = ArenaWorkspace(template.arena)
        self.workspace.release()  # until it is fitted

    def fit(self, sizes: Sequence[int], like: Program | None, size: int) -> list[int] | None:
        """What the template was asked for, for these sizes; None where a guard does not hold. A run is expected to take
        as long as one of a program like this with so many bytes of values, twice as long with four times as many: the
        weights are read in the same time.
        """
        template, base = self._template, self._template.arena.address
        if not self._fill(sizes, base):
            return None
        self._sizes = sizes
        self._values = values = self._results.tolist()
        wanted = values[template.size]
        self.workspace.take_part(wanted)
        moved = False
        for storage, where in self._resized:
            moved |= storage.resize(values[where])
        if moved:
            self._fill(sizes, base)
        self.program.bindings.begin(self._remade() if template.tables or template.pythons else (), base)
        expected = like.nanoseconds if isinstance(like, CpuProgram) else None
        if expected is not None and wanted > size > 0:
            expected <<= ((wanted // size).bit_length() - 1) // 2
        self.program.begin(values[template.beyond] > 0, expected)
        return values

    def _fill(self, sizes: Sequence[int], base: int) -> bool:
        addresses = [storage.address for storage, _ in self._resized]
        return self._template.evaluator.fill((*sizes, self._program_begin, base, *addresses), self._begin)

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
        return self._template.live(self._sizes)

    def release(self) -> None:
        """Hold nothing for these sizes any more, but for the workspace."""
        self.program.bindings.forget()
        for storage, _ in self._resized:
            if storage.size > MAX_KEPT:
                storage.release()

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
