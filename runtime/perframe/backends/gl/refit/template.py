"""A program for any sizes: its steps' numbers, and the lengths of its values, are arithmetic of sizes.

GL runs programs one after the other, so that one program is enough: its numbers are written anew for other sizes.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from perframe.backends.gl.lowering.steps import on_gl
from perframe.backends.gl.program.sized import ResizedProgram
from perframe.backends.gl.refit.paper import GLMemory, PaperSlots, PaperStorage
from perframe.backends.gl.replay import SizeAt
from perframe.backends.gl.storage.slots import Slots, growth, require_growth
from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.operand import Array
from perframe.backends.refit import SizeMath
from perframe.ir.sizes.size import is_symbolic, plain
from perframe.ir.sizes.trace import Trace
from perframe.tensor import DataType, Storage
from perframe.tensor.memory import ledger, with_room
from perframe.tensor.storage import address_of


class GLTemplate:
    """The steps of one program and the arithmetic of their numbers."""

    def __init__(
        self,
        steps: Sequence[Any],
        workspace: PaperSlots,
        trace: Trace,
        results: Sequence[int],
        storages: Mapping[int, tuple[slice, DataType]],
        math: SizeMath,
    ) -> None:
        self._results: list[Any] = list(results)
        self._places: dict[Any, SizeAt] = {}
        self.storages, self.slots = storages, workspace.slots
        self.open_storages = [  # whose shapes depend on sizes
            (planned, where) for planned, (where, _) in storages.items() if any(map(is_symbolic, results[where]))
        ]
        self.lengths = [self._note(slot.storage.size) for slot in workspace.slots]
        self._marks = [[workspace.slots.index(slot) for slot in slots] for slots in workspace.marks]
        self.steps = [step.with_numbers(self._note) for step in steps]
        self.tables = [
            (storage, storage.table[0], [self._note(argument) for argument in storage.table[1]])
            for storage in dict.fromkeys(storage for step in steps for storage in step.reads)
            if isinstance(storage, PaperStorage) and storage.table is not None
        ]
        self._arithmetic = trace.arithmetic(self._results)
        self.first = [plain(number) for number in self._results]
        self.native = math.native(self._arithmetic, [(at + 1, 0) for at in range(len(self.first))], len(self.first))
        self._block = np.zeros(len(self.first) + 1, np.int64)
        self._address, self._numbers = address_of(self._block), self._block[1:]
        self._made: weakref.WeakKeyDictionary[GLMemory, GLFitted] = weakref.WeakKeyDictionary()

    def _note(self, number: Any) -> Any:
        """Return the place of a symbolic number among the results; other numbers stay."""
        if not is_symbolic(number):
            return number
        key = frozenset(number.terms.items())
        if key not in self._places:
            self._places[key] = SizeAt(len(self._results))
            self._results.append(number)
        return self._places[key]

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether the template serves these sizes."""
        return self._arithmetic.evaluate(sizes) is not None

    @property
    def resizes(self) -> bool:
        """Return True."""
        return True

    def fit(self, backend: Any, spare: Any = None) -> GLFitted | None:
        """Write the numbers for the sizes of the last choice into the program; None while a kernel is compiling."""
        if not self.native.ready:
            return None
        self.native.read(self._address)
        found = self._made.get(backend)
        if found is None or not found.is_open:
            found = self._made[backend] = GLFitted(self, backend, self._numbers.tolist())
        found.apply(self._numbers)
        return found

    def live(self, numbers: Sequence[int]) -> list[int]:
        """Return for each layer the bytes of the values that are live while it runs."""
        sizes = [
            slot.storage.element_bytes * resolved(length, numbers)
            for slot, length in zip(self.slots, self.lengths, strict=True)
        ]
        return [sum(sizes[slot] for slot in slots) for slots in self._marks]


def resolved(number: Any, numbers: Sequence[int]) -> Any:
    """Return a number of a template for some sizes."""
    return numbers[number.place] if isinstance(number, SizeAt) else number


class GLFitted:
    """A template's program in one context, with its storages. `apply` makes it the program for other sizes."""

    is_only = True

    def __init__(self, template: GLTemplate, backend: GLMemory, numbers: list[int]) -> None:
        self._template, self._backend, self.is_open = template, backend, True
        self.numbers = numbers
        self.workspace = _Workspace(self, backend)
        self._planned: dict[int, GLStorage] = {}
        self._constants: dict[int, GLStorage] = {}
        try:
            self._make(template, backend)
        except BaseException:
            for storage in self._planned.values():
                storage.release()
            self.workspace.release()
            raise

    def _make(self, template: GLTemplate, backend: GLMemory) -> None:
        for planned, (where, dtype) in template.storages.items():
            self._planned[planned] = backend.alloc(self._shape(where), dtype)
        self._open = [(self._planned[planned], where) for planned, where in template.open_storages]
        self._slots = [self.workspace.room(slot.storage) for slot in template.slots]
        places = {id(slot.storage): real for slot, real in zip(template.slots, self._slots, strict=True)}
        self._made_for: list[Sequence[Any]] = [()] * len(template.tables)  # the arguments of tables

        def found(storage: GLStorage) -> Storage:
            if not isinstance(storage, PaperStorage):
                return storage  # a weight
            if storage.array is not None:
                return self._constant(storage, storage.array)
            return self._planned.get(id(storage)) or places[id(storage)]

        device = backend.device
        with device.using():
            steps = [step.on(device, found) for step in template.steps]
            self.program = ResizedProgram(device, steps, backend.timers)
        self.storages: Mapping[int, Storage] = self._planned

    def _shape(self, where: slice) -> Sequence[int]:
        return [max(1, number) for number in self.numbers[where]]

    def _constant(self, storage: PaperStorage, array: Array) -> Storage:
        if id(storage) not in self._constants:
            made = self._backend.alloc(array.shape, storage.dtype, storage.is_half)
            made.upload(array)
            self._constants[id(storage)] = made
        found: Storage = self._constants[id(storage)]
        return found

    def apply(self, numbers: Array) -> None:
        """Make room for these sizes, and write their numbers."""
        given = numbers.tolist()
        if small := self._small(given):
            roomy = [(storage, min(size + size // 2, storage.most_elements)) for storage, size in small]
            for storage, size in roomy if ledger.fits(growth(roomy)) else require_growth(small):
                self.workspace.enlarge(storage, size)
        self.numbers = given
        for at, (table, make, arguments) in enumerate(self._template.tables):
            made_for = [resolved(argument, given) for argument in arguments]
            if made_for != self._made_for[at]:
                self._made_for[at] = made_for
                _fill(self._constants[id(table)], make(*made_for))
        self.program.apply(numbers)

    def _small(self, numbers: list[int]) -> list[tuple[GLStorage, int]]:
        """The storages without room for their values, and the elements of these values."""
        found = []
        for storage, where in self._open:
            size = prod(numbers[where]) or 1
            if storage.max_capacity < size:
                found.append((storage, size))
        for storage, length in zip(self._slots, self._template.lengths, strict=True):
            size = resolved(length, numbers) or 1
            if storage.max_capacity < size:
                found.append((storage, size))
        return found

    def live(self) -> list[int]:
        """Return for each layer the bytes of all values that are live while it runs."""
        return self._template.live(self.numbers)

    def close(self) -> None:
        """Note that its storages are gone."""
        self.is_open = False
        for storage in self._constants.values():
            storage.release()


def _fill(storage: Any, values: Array) -> None:
    if storage.max_capacity < values.size:
        storage.enlarge((with_room(storage, values.size),))
    storage.upload(values)


class _Workspace(Slots):
    """Slots of the backend's pool, which all plans share. They grow with the sizes of one program."""

    def __init__(self, owner: GLFitted, backend: GLMemory) -> None:
        super().__init__(backend.pool)
        self._owner, self._backend = weakref.ref(owner), backend

    def room(self, planned: PaperStorage) -> GLStorage:
        """Take storage for values of the planned storage."""
        return on_gl(self._take((max(1, plain(planned.size)),), planned.dtype, planned.is_half))

    def enlarge(self, storage: GLStorage, elements: int) -> None:
        """Make room for more elements in a storage of the pool, or in another one."""
        slot = self._taken.get(id(storage))
        if slot is None:
            storage.enlarge((elements,))
        else:
            size = self._backend.capacity((elements,), storage.dtype, storage.is_half)[1]
            self._used[slot] = size, (elements,)
            slot.enlarge(size, (elements,))

    def release(self) -> None:
        """Leave the pool."""
        super().release()
        owner = self._owner()
        if owner is not None:
            owner.close()
