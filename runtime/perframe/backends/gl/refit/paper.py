"""A backend on which plans are made in another thread and never run: it makes no GL object."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any, NamedTuple, Protocol

from perframe.backends.gl.compile.program import Shader
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.program.timers import StepTimers
from perframe.backends.gl.storage.slots import Allocator, Pool
from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.operand import Array
from perframe.backends.protocol import Step
from perframe.ir.sizes.size import at_least, is_symbolic, plain
from perframe.safety.records import dataclass
from perframe.tensor import BackendType, DataType, Storage


class GLMemory(Allocator, Protocol):
    """What templates use of a GL backend."""

    backend_type: BackendType
    device: Device
    pool: Pool
    timers: Callable[[Device, int], StepTimers]


class PaperProgram(NamedTuple):
    """A program that is not linked: what the device's `programs.get` takes."""

    shader: Shader
    samplers: Sequence[str]
    kernel: str
    layer: str


class _PaperPrograms:
    def get(self, shader: Shader, samplers: Sequence[str], kernel: str, layer: str = "") -> PaperProgram:
        """Return the program's description."""
        return PaperProgram(shader, samplers, kernel, layer)


class PaperDevice:
    """A device's facts, without its context."""

    def __init__(self, device: Device) -> None:
        with device.using():  # facts that the driver is asked for once
            for fact in ("limits", "choices", "sampler", "vertex_array", "most_rounds", "texture_shift"):
                getattr(device, fact)
        self._device, self.programs = device, _PaperPrograms()

    def using(self) -> AbstractContextManager[Any]:
        """Return a context that does nothing."""
        return nullcontext()

    def __eq__(self, other: object) -> bool:
        """Whether it is of this device: storage on one is storage on the other."""
        return other is self._device or (isinstance(other, PaperDevice) and other._device is self._device)

    def __hash__(self) -> int:
        return hash(self._device)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


class PaperStorage(GLStorage):
    """Storage without an object. `array` holds the values of a constant."""

    def __init__(self, backend: GLMemory, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> None:
        self._type = backend.backend_type
        self.dtype, self.size, self.is_half = dtype, math.prod(shape), is_half or dtype is DataType.FLOAT16
        self.array: Array | None = None
        self.table: tuple[Callable[..., Array], Sequence[Any]] | None = None  # what makes the array for other sizes
        self._objects = ()

    def note_table(self, make: Callable[..., Array], arguments: Sequence[Any]) -> None:
        """Keep the function that made the values, and its arguments, if sizes are among them."""
        if any(map(is_symbolic, arguments)):
            self.table = make, arguments

    @property
    def backend_type(self) -> BackendType:  # type: ignore[override]
        """That of the backend."""
        return self._type

    @property
    def max_capacity(self) -> int:
        """The number of elements."""
        return self.size

    @property
    def is_open(self) -> bool:
        """Return True."""
        return True

    def upload(self, array: Array) -> None:
        """Raise AssertionError: it has no object."""
        raise AssertionError("paper has no values")

    def upload_part(self, array: Array, at: Sequence[int], shape: Sequence[int]) -> None:
        """Raise AssertionError: it has no object."""
        raise AssertionError("paper has no values")

    def request(self, shape: Sequence[int], dtype: DataType) -> Any:
        """Raise AssertionError: it has no object."""
        raise AssertionError("paper has no values")


@dataclass(eq=False)
class PaperSlot:
    """A storage for several values, one after the other. `storage.size` is the size of the largest."""

    kind: str
    storage: PaperStorage


class PaperSlots:
    """A workspace whose slots are as large as their largest value for any sizes."""

    def __init__(self, backend: GLMemory) -> None:
        self._backend, self.slots = backend, list[PaperSlot]()
        self._free: list[PaperSlot] = []
        self._taken: dict[int, PaperSlot] = {}
        self._scratch: list[Storage] = []
        self.marks: list[list[PaperSlot]] = []  # for each layer, the slots that are taken while it runs
        self.used = self.size = 0

    def take(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> Storage:
        """Take storage for a value, until it is given back."""
        return self._take(shape, dtype, is_half or self._backend.precision.halves_value(dtype))

    def _take(self, shape: Sequence[int], dtype: DataType, is_half: bool) -> Storage:
        is_half = is_half or dtype is DataType.FLOAT16
        kind, size = self._backend.capacity((4,), dtype, is_half)[0], math.prod(shape)
        free = [slot for slot in self._free if slot.kind == kind]
        if free:
            slot = min(free, key=lambda slot: abs(plain(slot.storage.size) - plain(size)))
            self._free.remove(slot)
            slot.storage.size = at_least(slot.storage.size, size)
        else:
            slot = PaperSlot(kind, PaperStorage(self._backend, (size,), dtype, is_half))
            self.slots.append(slot)
        self._taken[id(slot.storage)] = slot
        return slot.storage

    def give_back(self, storage: Storage) -> None:
        """Take storage back: nothing reads its values any more."""
        slot = self._taken.pop(id(storage), None)
        if slot is not None:
            self._free.append(slot)

    def scratch(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Return storage for values that one layer passes between its steps."""
        self._scratch.append(self._take(shape, dtype, False))
        return self._scratch[-1]

    def end_layer(self) -> None:
        """Give the layer's scratch back."""
        self.marks.append(list(self._taken.values()))
        while self._scratch:
            self.give_back(self._scratch.pop())

    def end_plan(self) -> None:
        """Do nothing."""

    begin = release = end_plan


@dataclass(frozen=True)
class PaperSteps:
    """The program of a traced plan: its steps."""

    steps: Sequence[Any]
    nanoseconds: int | None = None
    is_brief: bool = False
    is_provisional: bool = False


def paper_backend(backend: GLMemory) -> Any:
    """Return a copy of a backend that makes no GL object. The context is current."""
    made: Any = copy(backend)
    made.device, made.makes_constants = PaperDevice(backend.device), False

    def alloc(shape: Sequence[int], dtype: DataType, is_half: bool = False) -> PaperStorage:
        return PaperStorage(made, shape, dtype, is_half)

    def constant(value: Array, is_weight: bool = False, is_half: bool = False) -> Storage:
        is_half = is_weight and made.precision.halves_weight(value, is_half)
        storage = PaperStorage(made, value.shape, DataType.of(value.dtype), is_half)
        storage.array = value
        return storage

    def program(steps: Sequence[Step]) -> PaperSteps:
        return PaperSteps(steps)

    made.alloc, made.constant, made.program = alloc, constant, program
    made.workspace = lambda: PaperSlots(made)
    return made
