"""Constants on the backends of a worker, unchanged and as operands that are derived from them for kernels. Workers
that have the same arrays share both where their backends share memory.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import NamedTuple

from perframe.backends.operand import Later, Make, Operand
from perframe.backends.preloading import Parcel, Preloading
from perframe.backends.protocol import Backend
from perframe.errors import InputError
from perframe.ir import Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import Array, DataType, HostStorage, Storage
from perframe.tensor.background import in_turns
from perframe.tensor.locks import new_lock
from perframe.tensor.memory import Held, held_arrays, sum_unseen

log = logging.getLogger("perframe")
Key = tuple[int, Hashable, str]  # an array's number, the memory in which the operand lies, and the kind
LEAST_HALVED = 256  # elements: a smaller constant stays float32, since half of it is not worth a program of its own
SMALL = 1 << 16  # bytes: a trace has its own of constants that are not there, if they are small
UNCHANGED = ""  # the kind of an operand that is not derived


class SharedOperand:
    """An operand that is made of an array, shared by all pools that have acquired it."""

    def __init__(self, source: Array, key: Key) -> None:
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

    @property
    def is_made(self) -> bool:
        """Whether the operand is there."""
        return self._made is not None

    def free(self) -> None:
        """Free the operand's storage."""
        if self._made is not None:
            self._made.storage.release()


_lock = new_lock()
# weak, since a worker may disappear without a release
_known: weakref.WeakValueDictionary[Key, SharedOperand] = weakref.WeakValueDictionary()


def acquire(source: Array, memory: Hashable, kind: str) -> SharedOperand:
    """Return the shared operand of this kind for a read-only array. Every call needs a later call of `let_go`."""
    key = (id(source), memory, kind)
    with _lock:
        found = _known.get(key)
        if found is None or found.source() is not source:  # an array that is gone may have had this id
            found = _known[key] = SharedOperand(source, key)
        found.users += 1
        return found


def is_made(source: Array, memory: Hashable, kind: str) -> bool:
    """Whether there is an operand of this kind for an array."""
    with _lock:
        found = _known.get((id(source), memory, kind))
        return found is not None and found.source() is source and found.is_made


def let_go(shared: SharedOperand) -> None:
    """Give a shared operand back. The last user frees it."""
    with _lock:
        shared.users -= 1
        if shared.users:
            return
        if _known.get(shared.key) is shared:
            del _known[shared.key]
    shared.free()


class MissingConstant(NamedTuple):
    """A constant that a trace needs on a backend, where only the thread of the context may put it."""

    value: Value
    kind: str
    array: Array


class ConstantPool:
    """A model's constants on the backends of one worker: made when first used, shared by all its plans, and by other
    workers with the same arrays in the same memory.
    """

    def __init__(self, constants: Mapping[Value, Array], small: int = SMALL) -> None:
        """A trace has its own of constants of `small` bytes at most."""
        self._constants, self._small = constants, small
        self.known = {value: PartialTensor.of(array) for value, array in constants.items()}
        self._made: dict[tuple[str, Value, str], Operand] = {}  # by backend, constant and kind
        self._taken: dict[tuple[str, Value, str], SharedOperand] = {}  # the operands that workers share
        self._missing: list[MissingConstant] = []
        arrays = [array for array in constants.values() if array.dtype != object]
        self._held = held_arrays(arrays, "the constants of a model")

    def storage(self, backend: Backend, value: Value, array: Array) -> Storage:
        """Return the constant's storage on a backend."""
        return self._operand(backend, value, UNCHANGED, lambda: array).storage

    def derived(self, backend: Backend, value: Value, array: Array, kind: str, make: Make) -> Operand:
        """Return the operand that `make` derives from a constant, on a backend. All callers share one operand of each
        kind.
        """

        def derived() -> Array:
            made = make(array)
            made.flags.writeable = False  # no other code has this array, so the storage needs no copy
            return made

        def later() -> Operand:
            assert isinstance(make, Later)
            held = Held(make.size * DataType.FLOAT32.numpy.itemsize, f"the packed constant {value.name!r}")
            storage = HostStorage.later(make.size, DataType.FLOAT32, derived)
            storage.held = held
            return Operand(value.name, (make.size,), DataType.FLOAT32, storage=storage)

        return self._operand(backend, value, kind, derived, later if isinstance(make, Later) else None)

    def parcels(self, backend: Preloading) -> list[tuple[MissingConstant, Parcel]]:
        """Return the constants that were not there since the last call, ready to be uploaded in pieces. For a thread
        beside that of the context.
        """
        made: list[tuple[MissingConstant, Parcel]] = []
        known: dict[tuple[Value, str], Parcel] = {}
        for missing in in_turns(self.take_missing()):
            key = missing.value, missing.kind
            if key not in known:
                is_weight = self._is_weight(missing.value)
                known[key] = backend.parcel(missing.array, is_weight, missing.value.is_half is True)
            made.append((missing, known[key]))
        return made

    def share(self, other: ConstantPool) -> None:
        """Share the operands that another pool of these constants shares."""
        for key, shared in other._taken.items():
            if key not in self._made:
                self._taken[key] = acquire(self._constants[key[1]], shared.key[1], key[2])
                self._made[key] = other._made[key]

    def adopt(self, backend: Backend, missing: MissingConstant, storage: Storage) -> Storage:
        """Take storage in which a constant lies already, or the storage that another pool has made meanwhile."""
        array = missing.array
        self._warn(backend, missing.value, array)
        made = Operand(missing.value.name, array.shape, DataType.of(array.dtype), storage=storage)
        return self._operand(backend, missing.value, missing.kind, lambda: array, lambda: made).storage

    def put(self, backend: Backend, missing: MissingConstant) -> None:
        """Put a constant on a backend that a trace did not find there."""
        if missing.value in self._constants:
            self._operand(backend, missing.value, missing.kind, lambda: missing.array)

    def take_missing(self) -> list[MissingConstant]:
        """Return the constants that were not there since the last call."""
        missing, self._missing = self._missing, []
        return missing

    def _operand(
        self,
        backend: Backend,
        value: Value,
        kind: str,
        array: Callable[[], Array],
        later: Callable[[], Operand] | None = None,
    ) -> Operand:
        """The operand that this pool or another one has made already, or else a new one: that of `later`, if given, or
        one that holds the result of `array`.
        """

        def made() -> Operand:
            return self._uploaded(backend, value, array()) if later is None else later()

        source = self._constants.get(value)
        if source is None:  # a constant of one plan
            return made()
        key = (backend.backend_type, value, kind)
        if key not in self._made:
            own = source.flags.writeable
            if not backend.makes_constants:
                own = not is_made(source, backend.memory, kind)
                if own and source.nbytes > self._small:
                    return self._wanted(backend, MissingConstant(value, kind, array()))
            if own:
                self._made[key] = made()
            else:
                shared = acquire(source, backend.memory, kind)
                try:
                    self._made[key] = shared.operand(made)
                except BaseException:
                    let_go(shared)
                    raise
                self._taken[key] = shared
        return self._made[key]

    def _wanted(self, backend: Backend, missing: MissingConstant) -> Operand:
        """Note a constant that is not there, and return an operand of a trace that no one will run. Raises InputError
        for an array that no other pool shares.
        """
        if self._constants[missing.value].flags.writeable:
            name = missing.value.name
            raise InputError(
                f"the constant {name!r} is not on {backend.backend_type}, and no other worker can put it there"
            )
        self._missing.append(missing)
        return self._uploaded(backend, missing.value, missing.array)

    def _uploaded(self, backend: Backend, value: Value, array: Array) -> Operand:
        """Put a constant, or an array derived from it, on a backend."""
        self._warn(backend, value, array)
        storage = backend.constant(array, self._is_weight(value), value.is_half is True)
        is_made = array is not self._constants.get(value) and array.dtype != object
        if is_made and isinstance(storage, HostStorage) and not storage.held_bytes:
            storage.held = Held(array.nbytes, f"the packed constant {value.name!r}")
        return Operand(value.name, array.shape, DataType.of(array.dtype), storage=storage)

    def _warn(self, backend: Backend, value: Value, array: Array) -> None:
        """Warn of a weight that stays float32 against the user's wish."""
        reason = backend.precision.why_whole(array) if self._is_weight(value) else None
        if reason is not None:
            log.warning("constant %r %s stays float32 on %s: %s", value.name, array.shape, backend.backend_type, reason)

    def _is_weight(self, value: Value) -> bool:
        """Whether a constant is large, and not one of a plan: another shape may not ask for other programs."""
        return value in self._constants and self._constants[value].size >= LEAST_HALVED

    @property
    def bytes_used(self) -> tuple[int, int, int]:
        """The bytes of (all constants of the model, constants that kernels read unchanged, derived operands). The first
        two share memory where they can.
        """
        derived = unchanged = 0
        for (_, _, kind), operand in self._made.items():
            size = operand.shape.size * operand.storage.element_bytes
            if kind == UNCHANGED:
                unchanged += size
            else:
                derived += size
        return sum(value.nbytes for value in self._constants.values()), unchanged, derived

    def held(self, seen: set[int]) -> int:
        """The bytes held for the constants, apart from the objects whose ids are in `seen`; adds its own ids."""
        found = [(id(held), held.size) for held in self._held]
        found += [(id(operand.storage), operand.storage.held_bytes) for operand in self._made.values()]
        return sum_unseen(found, seen)

    @property
    def count(self) -> int:
        """The number of operands."""
        return len(self._made)

    def free_after(self, count: int) -> None:
        """Free the operands made after the first `count`: those of a plan that cannot be."""
        for key in [*self._made][count:]:
            self._free(key)

    def stay_whole(self, backend: Backend) -> tuple[str, ...]:
        """The names of constants that a backend keeps in float32 against the user's wish."""
        if backend.precision.weights != DataType.FLOAT16:
            return ()
        values = [
            (value, operand) for (where, value, _), operand in self._made.items() if where == backend.backend_type
        ]
        whole = {value for value, made in values if made.dtype is DataType.FLOAT32 and made.storage.element_bytes == 4}
        return tuple(sorted(value.name for value in whole if self._is_weight(value)))

    def releasing(self) -> Iterator[None]:
        """Free one storage at each step, except those that other workers use."""
        for key in [*self._made]:
            self._free(key)
            yield
        self._held = []

    def release(self) -> None:
        """Free all storages, except those that other workers use."""
        for _ in self.releasing():
            pass

    def _free(self, key: tuple[str, Value, str]) -> None:
        made, shared = self._made.pop(key), self._taken.pop(key, None)
        if shared is None:
            made.storage.release()
        else:
            let_go(shared)
