"""Constants on the backends of a worker, and the operands that are derived from them for kernels. Workers that have the
same arrays share these operands.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from perframe.backends.operand import Make, Operand
from perframe.backends.protocol import Backend
from perframe.tensor import BackendType, DataType, Storage
from perframe.tensor.locks import new_lock
from perframe.tensor.partial import PartialTensor

Array = NDArray[Any]


class SharedOperand:
    """An operand that is derived from an array, shared by all pools that have acquired it."""

    def __init__(self, source: Array, key: tuple[int, str]) -> None:
        self.source, self.key = weakref.ref(source), key
        self.users = 0
        self._made: Operand | None = None
        self._making = new_lock()

    def operand(self, make: Callable[[], Operand]) -> Operand:
        """Return the operand. The first call makes it."""
        with self._making:
            if self._made is None:
                self._made = make()
            return self._made

    def free(self) -> None:
        """Free the operand's storage."""
        if self._made is not None:
            self._made.storage.release()


_lock = new_lock()
# weak, since a worker may disappear without a release
_known: weakref.WeakValueDictionary[tuple[int, str], SharedOperand] = weakref.WeakValueDictionary()


def acquire(source: Array, kind: str) -> SharedOperand:
    """Return the shared operand of this kind for a read-only array. Every call needs a later call of `let_go`."""
    key = (id(source), kind)
    with _lock:
        found = _known.get(key)
        if found is None or found.source() is not source:  # an array that is gone may have had this id
            found = _known[key] = SharedOperand(source, key)
        found.users += 1
        return found


def let_go(shared: SharedOperand) -> None:
    """Give a shared operand back. The last user frees it."""
    with _lock:
        shared.users -= 1
        if shared.users:
            return
        if _known.get(shared.key) is shared:
            del _known[shared.key]
    shared.free()


class ConstantPool:
    """A model's constants on the backends of one worker: uploaded when first used, shared by all its plans.

    Workers share the operands that are derived from constants in host memory.
    """

    def __init__(self, constants: Mapping[str, Array]) -> None:
        self._constants = constants
        self.known = {name: PartialTensor.of(value) for name, value in constants.items()}
        self._storages: dict[tuple[str, str], Storage] = {}
        self._derived: dict[tuple[str, str, str], Operand] = {}
        self._taken: dict[tuple[str, str, str], SharedOperand] = {}  # the derived operands that workers share

    def storage(self, backend: Backend, name: str, value: Array) -> Storage:
        """Return the constant's storage on a backend."""
        key = (backend.backend_type, name)
        if name in self._constants and key in self._storages:
            return self._storages[key]
        storage = backend.constant(value)
        if name in self._constants:
            self._storages[key] = storage
        return storage

    def derived(self, backend: Backend, name: str, value: Array, kind: str, make: Make) -> Operand:
        """Return the operand that `make` derives from a constant, on a backend. All callers share one operand of each
        kind.
        """

        def made() -> Operand:
            array = make(value)
            array.flags.writeable = False  # no other code has this array, so the storage needs no copy
            return Operand(name, array.shape, DataType.of(array.dtype), storage=backend.constant(array))

        if name not in self._constants:
            return made()
        key = (backend.backend_type, name, kind)
        if key not in self._derived:
            source = self._constants[name]
            if backend.backend_type == BackendType.CPU and not source.flags.writeable:
                self._taken[key] = acquire(source, kind)
                self._derived[key] = self._taken[key].operand(made)
            else:
                self._derived[key] = made()
        return self._derived[key]

    @property
    def bytes_used(self) -> tuple[int, int, int]:
        """The bytes of (all constants of the model, constants that kernels read unchanged, derived operands). The first
        two share memory where they can.
        """
        derived = sum(operand.shape.size * operand.dtype.numpy.itemsize for operand in self._derived.values())
        as_they_are = sum(self._constants[name].nbytes for _, name in self._storages)
        return sum(value.nbytes for value in self._constants.values()), as_they_are, derived

    def release(self) -> None:
        """Free all storages, except derived operands that other workers use."""
        for shared in self._taken.values():
            let_go(shared)
        for key in self._derived.keys() - self._taken.keys():
            self._derived[key].storage.release()
        self._derived.clear()
        self._taken.clear()
        for storage in self._storages.values():
            storage.release()
        self._storages.clear()
