"""What a plan needs before the thread of the context makes it: constants in pieces, and linked programs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Protocol

from perframe.backends.gl.context.device import Device
from perframe.backends.gl.program.sequence import GLProgram
from perframe.backends.gl.refit.paper import GLMemory, PaperSlots, PaperSteps, PaperStorage
from perframe.backends.gl.storage.slots import Slots
from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.gl.storage.touching import touched
from perframe.backends.operand import Array
from perframe.tensor import DataType, Storage

KNOWN_AT_ONCE = 8  # programs that are linked already, which one step looks up


class Arranging(GLMemory, Protocol):
    """What is used of a GL backend here."""

    def arranged(self, value: Array, is_half: bool) -> Array:
        """Return values as storages keep them, in any thread."""

    def lent(self, arranged: Array, shape: Sequence[int], dtype: DataType, is_half: bool) -> GLStorage | None:
        """Return storage that lies in an arranged array, without a copy; None where that cannot be."""


def _touched(backend: Arranging, size: int) -> Iterator[None]:
    return touched(size) if backend.device.computes_in_calls else iter(())


class _Room(Slots):
    """A workspace in which each storage of a plan apart has one for itself."""

    def place(self, planned: PaperStorage) -> Storage:
        """Take storage as large as the planned one."""
        return self._take((max(1, planned.size),), planned.dtype, planned.is_half)


class RealizedProgram:
    """A program that was made without a context, with storage. `constants` holds storages by the ids of arrays."""

    def __init__(self, backend: Arranging, constants: Mapping[int, Storage]) -> None:
        self._backend, self._constants = backend, constants
        self._places: dict[int, Storage] = {}
        self.workspace, self.owned, self.live = _Room(backend.pool), list[Storage](), list[int]()
        self.steps: list[Any] = []
        self.program: GLProgram

    def make(self, program: PaperSteps, workspace: PaperSlots, owned: Sequence[Storage]) -> Iterator[None]:
        """Make storages and steps, one at a time, and the program."""
        for slot in workspace.slots:
            yield from _touched(self._backend, slot.storage.size * slot.storage.element_bytes)
            self._places[id(slot.storage)] = self.workspace.place(slot.storage)
            yield
        for storage in owned:
            if isinstance(storage, PaperStorage):
                yield from _touched(self._backend, storage.size * storage.element_bytes)
            self.place(storage)
            yield
        device = self._backend.device
        for step in program.steps:
            with device.using():
                self.steps.append(step.on(device, self.place))
            yield
        self.program = GLProgram(device, self.steps, self._backend.timers)
        sizes = {id(slot): slot.storage.element_bytes * slot.storage.size for slot in workspace.slots}
        self.live = [sum(sizes[id(slot)] for slot in slots) for slots in workspace.marks]
        yield

    def place(self, storage: Storage) -> Storage:
        """Return the storage for one of the plan apart. A constant of the plan alone is uploaded."""
        if not isinstance(storage, PaperStorage):
            return storage
        found = self._places.get(id(storage))
        if found is None and storage.array is not None:
            found = self._constants.get(id(storage.array))
        if found is None:
            made = self._backend.alloc((max(1, storage.size),), storage.dtype, storage.is_half)
            if storage.array is not None:
                made.upload(storage.array)
            self.owned.append(found := made)
        self._places[id(storage)] = found
        return found


class GLParcel:
    """A constant as its storage keeps it. Any thread may make it."""

    def __init__(self, backend: Arranging, value: Array, is_weight: bool, is_half: bool) -> None:
        self._backend, self._shape, self._dtype = backend, value.shape, DataType.of(value.dtype)
        self._is_half = is_weight and backend.precision.halves_weight(value, is_half)
        self._values = backend.arranged(value, self._is_half or self._dtype is DataType.FLOAT16)
        self.storage: GLStorage

    def upload(self) -> Iterator[None]:
        """Make the storage, and write a piece of the constant at each step, in the thread of the context."""
        lent = self._backend.lent(self._values, self._shape, self._dtype, self._is_half)
        if lent is None:
            yield from _touched(self._backend, self._values.nbytes)
        self.storage = lent or self._backend.alloc(self._shape, self._dtype, self._is_half)
        yield
        if lent is None:
            yield from self.storage.pieces(self._values)


def link(device: Device, program: PaperSteps) -> Generator[bool, None, bool]:
    """Link the programs of steps that were made without a context, one at each step. Yields whether the driver does the
    rest by itself, and returns whether any program was new. Raises BackendError for a shader that the driver refuses.
    """
    before = known = device.programs.count
    for at, step in enumerate(program.steps):
        with device.using():
            step.link(device)
        if device.programs.count > known or at % KNOWN_AT_ONCE == 0:
            known = device.programs.count
            yield False
    done = False
    while not done:
        with device.using():
            done = device.programs.settle_one()
            waits = device.programs.waits
        yield waits
    return known > before
