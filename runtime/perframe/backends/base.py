"""What a backend is. None of its methods is named after an operator: families find their lowering by the stem of
their file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from perframe.errors import BackendError
from perframe.tensor import BackendType, DataType, HostStorage, Storage, TensorShape

Array = NDArray[Any]
Make = Callable[[Array], Array]


class Operand:
    """A value as a lowering sees it: shape, dtype, values where they are known, and storage, made when it is first
    asked for.
    """

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DataType,
        value: Array | None = None,
        make_storage: Callable[[], Storage] | None = None,
        derive: Callable[[str, Make], Operand] | None = None,
    ) -> None:
        self.name, self.shape, self.dtype, self.value = name, TensorShape(shape), dtype, value
        self._make_storage, self._derive = make_storage, derive
        self._storage: Storage | None = None

    @classmethod
    def of(cls, array: Array) -> Operand:
        """An operand of known values that has no storage."""
        return cls("", array.shape, DataType.of(array.dtype), array)

    def derived(self, kind: str, make: Make) -> Operand:
        """What `make` makes of a constant's values, such as weights in a kernel's order: made once for all plans."""
        if self._derive is not None:
            return self._derive(kind, make)
        assert self.value is not None
        return Operand.stored(make(self.value))

    @classmethod
    def stored(cls, array: Array) -> Operand:
        """An operand of known values in host memory of its own."""
        storage = HostStorage(array.shape, DataType.of(array.dtype))
        storage.upload(array)
        return cls("", array.shape, storage.dtype, array, lambda: storage)

    @property
    def has_storage(self) -> bool:
        """Whether anyone has asked for its storage."""
        return self._storage is not None

    @property
    def storage(self) -> Storage:
        """Where the data lies. A constant is uploaded the first time."""
        if self._storage is None:
            if self._make_storage is None:
                raise BackendError(f"value {self.name!r} has no storage")
            self._storage = self._make_storage()
        return self._storage


class LayerLike(Protocol):
    """A layer, as far as backends know it."""

    @property
    def op(self) -> str:
        """The operator's name."""

    @property
    def name(self) -> str:
        """The layer's name, for reports."""

    @property
    def family(self) -> str:
        """The family whose file lowers it."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that the model gives."""

    @property
    def declaration(self) -> Any:
        """What is declared of its operator."""

    @property
    def epilogue(self) -> Any:
        """The stages to apply to each element of the first output."""

    @property
    def channels_last(self) -> bool:
        """Whether its data has the channels as the last dim, though its form has them as the second."""

    def form(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The canonical form of its family."""


class Step(Protocol):
    """One bound piece of a plan: it knows its kernel, its operands and its numbers."""

    layer: str

    def replace(self, old: Storage, new: Storage) -> None:
        """Read `new` wherever `old` was read."""


class Program(Protocol):
    """Consecutive steps, ready to run."""

    def __len__(self) -> int:
        """How many steps."""

    def replace(self, old: Storage, new: Storage) -> None:
        """Read `new` wherever `old` was read."""

    def run(self, begin: int, end: int) -> None:
        """Run some of them, in order; the caller sees to what they depend on."""


@dataclass
class Access:
    """What a program shares with others. `rebinds` (old, new) are made before its next run, never during one."""

    reads: list[Storage] = field(default_factory=list)
    writes: list[Storage] = field(default_factory=list)
    rebinds: list[tuple[Storage, Storage]] = field(default_factory=list)

    def rebind(self, old: Storage, new: Storage) -> None:
        """From the next run on read `new` instead of `old`."""
        self.rebinds.append((old, new))
        self.reads = [new if storage is old else storage for storage in self.reads]

    def take_rebinds(self) -> list[tuple[Storage, Storage]]:
        """What is to be bound anew, once."""
        taken, self.rebinds = self.rebinds, []
        return taken


class Backend(Protocol):
    """A place where layers run."""

    backend_type: BackendType

    def alloc(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """New storage of undefined values."""

    def owns(self, storage: Storage) -> bool:
        """Whether its steps can read this storage: it is of its kind, and of its GL context."""

    def copy(self, source: Storage, target: Storage, shape: Sequence[int], dtype: DataType) -> None:
        """Copy a value between two storages of its own, in the order of submission and without waiting."""

    def capacity(self, shape: Sequence[int], dtype: DataType) -> tuple[str, int]:
        """The class of storage that a value needs, and how much; storage of one class that is large enough can be
        reused.
        """

    def supports(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
        """Why it cannot run this layer; "" when it can."""

    def lower(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
    ) -> list[Step]:
        """The steps that run a layer."""

    def program(self, steps: Sequence[Step]) -> Program:
        """Make steps ready to run."""

    def submit(self, program: Program, begin: int, end: int, access: Access) -> None:
        """Begin to run some steps and return; who reads `access.writes` afterwards waits for them."""

    def flush(self) -> None:
        """See to it that what was submitted makes progress without further calls."""

    def close(self) -> None:
        """Wait for what was submitted and free what the backend holds."""


Scratch = Callable[[Sequence[int], DataType], Operand]
