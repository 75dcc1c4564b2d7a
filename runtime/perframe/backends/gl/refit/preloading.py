"""What a plan needs before the thread of the context makes it: constants in pieces, and linked programs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

from perframe.backends.gl.context.device import Device
from perframe.backends.gl.refit.paper import PaperSteps
from perframe.backends.gl.storage.slots import Allocator
from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.operand import Array
from perframe.tensor import DataType

KNOWN_AT_ONCE = 8  # programs that are linked already, which one step looks up


class Arranging(Allocator, Protocol):
    """What parcels use of a GL backend."""

    def arranged(self, value: Array, is_half: bool) -> Array:
        """Return values as storages keep them, in any thread."""

    def lent(self, arranged: Array, shape: Sequence[int], dtype: DataType, is_half: bool) -> GLStorage | None:
        """Return storage that lies in an arranged array, without a copy; None where that cannot be."""


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
