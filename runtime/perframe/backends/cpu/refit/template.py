"""Programs for any sizes: numbers, lengths of values and shapes are arithmetic of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import team
from perframe.backends.cpu.lowering.rows import extent
from perframe.backends.cpu.program.arena import Arena, ArenaStorage, ArenaWorkspace, Life, aligned
from perframe.backends.cpu.program.bindings import Addresses, Bindings, part_of, whole_of
from perframe.backends.cpu.program.program import (
    CpuProgram,
    CpuStep,
    NativeStep,
    PythonStep,
    Table,
    row_begin,
    table_of,
)
from perframe.backends.cpu.refit.arithmetic import NativeArithmetic
from perframe.backends.cpu.threads import helpers
from perframe.errors import InputError
from perframe.ir.sizes.size import at_least, is_symbolic, plain
from perframe.ir.sizes.trace import Trace
from perframe.tensor import DataType, HostStorage
from perframe.tensor.checks import too_large
from perframe.tensor.guarded import guard
from perframe.tensor.storage import address_of, aligned_bytes

# words of a block whose contents are added to other words: 0, the arena's address, and storages' addresses
NOTHING, ARENA, STORAGES = range(3)


class CpuTemplate:
    """The program for one set of sizes, and the arithmetic that makes it a program for other sizes.

    A program for other sizes has a block of words: addresses, then the results that Python reads, then the words of the
    program. The program's words are copied from the first program. The arithmetic then writes the words that depend on
    sizes, and adds an address to some of them.
    """

    def __init__(
        self,
        steps: Sequence[CpuStep],
        workspace: ArenaWorkspace,
        trace: Trace,
        results: Sequence[int],
        storages: Mapping[int, tuple[slice, DataType]],
    ) -> None:
        self.steps, self.known = steps, Addresses.of(steps)
        self.by_whole = self.known.by_whole()
        self._pattern: CpuProgram | None = None
        self._results: list[int] = []
        self._note(results)  # first, at the indices that the caller knows
        self._sizes = self._note(trace.sizes)
        storages = dict(storages)
        for storage, shape in workspace.own:
            storages[id(storage)] = self._note(shape), storage.dtype
        self.storages, self._slots = storages, {planned: STORAGES + slot for slot, planned in enumerate(storages)}
        lengths = [aligned(life.storage.bytes_followed) for life in workspace.lives]
        begins, size = _laid_out(workspace.lives, lengths)
        self._marks, self._ids = workspace.marks, [id(life.storage) for life in workspace.lives]
        self._begins = dict(zip(self._ids, begins, strict=True))
        self.size = self._note([size]).start
        self.followed = [  # storages whose shapes depend on sizes
            (planned, where, STORAGES + slot)
            for slot, (planned, (where, _)) in enumerate(storages.items())
            if any(map(is_symbolic, self._results[where]))
        ]
        natives = [(index, step) for index, step in enumerate(steps) if isinstance(step, NativeStep)]
        # items beyond a thread's chunk: none, where no step is split
        self.beyond = self._note([reduce(at_least, [step.items - step.chunk for _, step in natives], 0)]).start
        self.pythons = [
            (index, step, self._operands_of(step)) for index, step in enumerate(steps) if isinstance(step, PythonStep)
        ]
        self.tables = self._tables_of(natives)
        self.given, self.results = STORAGES + len(storages), [plain(number) for number in self._results]
        self.words, self.numbers = self.given + len(self.results), row_begin(len(steps))
        placed = self._placed(natives)
        self._arithmetic = trace.arithmetic([*(number for _, number, _ in placed), *lengths])
        read = sum(word < self.words for word, _, _ in placed)
        self.native = NativeArithmetic(self._arithmetic, [(word, added) for word, _, added in placed], read)

    # --- what is made once ---

    def _note(self, numbers: Sequence[int]) -> slice:
        self._results += numbers
        return slice(len(self._results) - len(numbers), len(self._results))

    def _operands_of(self, step: PythonStep) -> list[tuple[HostStorage, slice]]:
        """Return for each operand its root storage, and the results that are its first byte, shape and pitch."""
        return [
            (root, self._note([first + self._begins.get(id(root), 0), *shape]))
            for (root, first), shape in zip(map(whole_of, step.operands), step.shapes, strict=True)
        ]

    def _tables_of(self, natives: Sequence[tuple[int, NativeStep]]) -> list[tuple[int, Table, list[tuple[int, int]]]]:
        """Return (index of its address, table, pairs of argument and result) for each table that depends on sizes."""
        found = []
        for index, step in natives:
            for address, table in enumerate(step.tables, self.known.starts[index] + len(step.operands)):
                followed = [at for at, argument in enumerate(table.arguments) if is_symbolic(argument)]
                if followed:
                    noted = self._note([table.arguments[at] for at in followed])
                    found.append((address, table, [*zip(followed, range(noted.start, noted.stop), strict=True)]))
        return found

    def _placed(self, natives: Sequence[tuple[int, NativeStep]]) -> list[tuple[int, int, int]]:
        """Return (index in the block, arithmetic, index of the address to add) for each word that depends on sizes."""
        known, begin = self.known, self.words + self.numbers
        found = [(word, number, NOTHING) for word, number in enumerate(self._results, self.given)]
        for index, step in natives:
            row = self.words + row_begin(index)
            found += [(row + team.ITEMS, step.items, NOTHING), (row + team.CHUNK, step.chunk, NOTHING)]
        found += [(begin + word, number, NOTHING) for word, number in enumerate(known.numbers)]
        found = [one for one in found if is_symbolic(one[1])]
        for word, (root, first) in zip(known.in_arena.tolist(), map(whole_of, known.storages), strict=True):
            found.append((begin + word, self._begins[id(root)] + first, ARENA))
        wholes = map(whole_of, known.others.values())
        for indices, (root, first) in zip(known.elsewhere.values(), wholes, strict=True):
            if id(root) in self._slots:  # constants have no slot
                found += [(begin + index, first, self._slots[id(root)]) for index in indices]
        return found

    @property
    def pattern(self) -> CpuProgram | None:
        """The program whose words are copied for other sizes; None while kernels are compiling."""
        if self._pattern is None and not jit.busy() and self.native.ready:
            helpers.team()  # starts the helper threads here rather than within a frame
            self._pattern = CpuProgram.of(self.steps, known=self.known)
        return self._pattern

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether the template serves these sizes. This is known before its kernels are compiled."""
        return self._arithmetic.evaluate(sizes) is not None

    @property
    def resizes(self) -> bool:
        """Whether it has no steps in Python."""
        return not self.pythons

    def fit(self, backend: Any, spare: Any = None) -> CpuSizedProgram | None:
        """Return the program for the sizes of the last choice, or None while kernels are compiling. `spare` is resized,
        unless it has steps in Python.
        """
        if isinstance(spare, CpuSizedProgram) and not self.pythons:
            spare.resize()
            return spare
        pattern = self.pattern
        return None if pattern is None else CpuSizedProgram(self, pattern, backend.arena)

    def live(self, numbers: Sequence[int]) -> list[int]:
        """Return for each layer the bytes of the values that are live while it runs, given these results."""
        found = self._arithmetic.evaluate(numbers[self._sizes])
        assert found is not None
        lengths = dict(zip(self._ids, found[len(found) - len(self._ids) :], strict=True))
        return [sum(lengths[storage] for storage in taken) for taken in self._marks]


class CpuSizedProgram:
    """A program for one set of sizes at a time, with its own storages and words. A frame waits while it is made."""

    is_only = False

    def __init__(self, template: CpuTemplate, pattern: CpuProgram, arena: Arena) -> None:
        self._template, self._arena, known = template, arena, template.known
        self._words = words = np.concatenate([np.zeros(template.given, np.int64), template.results, pattern.words])
        self._begin = address_of(words)
        template.native.read(self._begin)
        self.numbers: list[int] = words[template.given : template.words].tolist()
        self.storages = {
            planned: _new_storage(self.numbers[where], dtype) for planned, (where, dtype) in template.storages.items()
        }
        words[ARENA] = base = arena.address
        words[STORAGES : template.given] = [storage.address for storage in self.storages.values()]
        template.native.write(self._begin)
        own = words[template.words :]
        moved = address_of(own) - address_of(pattern.words)
        own[team.TABLE] += moved
        table_of(own, len(template.steps))[:, team.NUMBERS] += moved
        self._in_program = own[template.numbers :]
        tables, steps = self._remade_tables(), self._remade_steps()
        elsewhere = {id(one): template.by_whole.get(planned, []) for planned, one in self.storages.items()}
        size = self.numbers[template.size]
        self._bindings = Bindings(arena, size, known, self._in_program, elsewhere)
        self._bindings.attach(steps, base)
        self._words_of = {id(storage): word for word, storage in enumerate(self.storages.values(), STORAGES)}
        self._memories = {word: storage.memory for word, storage in enumerate(self.storages.values(), STORAGES)}
        memories = [*tables, *self._memories.values()]
        self.program = CpuProgram(steps, pattern.layout, own, self._bindings, self._splits, memories)
        self.workspace = ArenaWorkspace(arena, size)

    @property
    def _splits(self) -> bool:
        return bool(self.numbers[self._template.beyond] > 0)

    def resize(self) -> None:
        """Take the sizes of the last choice. No run uses the program. Storages keep what they are bound to.

        Raises InputError or BackendError for sizes without memory, and then leaves the program as it was.
        """
        template, words = self._template, self._words
        template.native.read(self._begin)
        numbers = words[template.given : template.words].tolist()
        rooms: list[tuple[HostStorage, int, int, tuple[NDArray[np.uint8], int]]] = []
        for planned, where, word in template.followed:
            storage, size = self.storages[planned], prod(numbers[where])
            if storage.size < size:
                _check_size(numbers[where], storage.dtype)
                room = size if guard() else 2 * size
                rooms.append((storage, word, room, aligned_bytes(room * storage.dtype.numpy.itemsize)))
        self.workspace.resize(numbers[template.size])
        self.numbers = numbers
        for storage, word, size, memory in rooms:
            storage.enlarge(size, memory)
            words[word], self._memories[word] = storage.address, storage.memory
        for planned, address in self._bindings.addresses.items():
            words[self._words_of[planned]] = address
        words[ARENA] = base = self._arena.address
        template.native.write(self._begin)
        self._bindings.resize(numbers[template.size], base)
        self.program.resize(self._splits, [*self._remade_tables(), *self._memories.values()])

    def _remade_tables(self) -> list[NDArray[Any]]:
        """Make the tables for these sizes, and write their addresses into the program's numbers."""
        made = []
        for address, table, followed in self._template.tables:
            arguments = list(table.arguments)
            for at, result in followed:
                arguments[at] = self.numbers[result]
            made.append(table.make(*arguments))
            self._in_program[address] = address_of(made[-1])
        return made

    def _remade_steps(self) -> Sequence[CpuStep]:
        """Return the template's steps. Steps in Python are made again for these sizes."""
        if not self._template.pythons:
            return self._template.steps
        steps = list(self._template.steps)
        for index, step, operands in self._template.pythons:
            steps[index] = self._again(step, operands)
        return steps

    def live(self) -> list[int]:
        """Return for each layer the bytes of the values that are live while it runs."""
        return self._template.live(self.numbers)

    def _again(self, step: PythonStep, operands: Sequence[tuple[HostStorage, slice]]) -> CpuStep:
        """Make a step in Python for these sizes."""
        made: list[HostStorage] = []
        shapes: list[Sequence[int]] = []
        for operand, (root, where) in zip(step.operands, operands, strict=True):
            first, *shape, pitch = self.numbers[where]
            shapes.append((*shape, pitch))
            size = extent(shape, pitch)
            storage = self.storages.get(id(root))
            if isinstance(root, ArenaStorage):
                made.append(ArenaStorage((size,), operand.dtype, first))
            elif storage is not None and operand is not root:
                made.append(part_of(storage, first, size, operand.dtype))
            else:
                made.append(storage or operand)
        assert step.again is not None
        return step.again(shapes, made)


def _new_storage(shape: Sequence[int], dtype: DataType) -> HostStorage:
    _check_size(shape, dtype)
    return HostStorage(shape, dtype)


def _check_size(shape: Sequence[int], dtype: DataType) -> None:
    reason = too_large(shape, dtype)
    if reason:
        raise InputError(f"for these input shapes {reason}")


def _laid_out(lives: Sequence[Life], lengths: Sequence[int]) -> tuple[list[int], int]:
    """Return the begin of each value, and the end of all, as arithmetic of their lengths.

    A value stays above the values that live at the same time and that lay below it in the first program. That keeps
    values apart whatever their lengths are.
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
