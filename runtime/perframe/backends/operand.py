"""Values as a lowering sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from perframe.errors import BackendError
from perframe.safety.records import dataclass
from perframe.tensor import DataType, HostStorage, Storage, TensorShape

Array = NDArray[Any]


Make = Callable[[Array], Array]


@dataclass(frozen=True)
class Later:
    """Derives `size` float32 numbers from a constant. A backend may put that off until its kernels are compiled."""

    size: int
    make: Make

    def __call__(self, value: Array) -> Array:
        """Return the numbers."""
        return self.make(value)


@dataclass(frozen=True)
class StorageRange:
    """The elements that a value takes within another value's storage: from `first` on, with rows `pitch` apart."""

    whole: str  # the name of the other value, which has storage of its own
    first: int
    pitch: int


class Operand:
    """A value as a lowering sees it: shape, dtype, known values if any, and storage, which is made on first use."""

    __slots__ = (
        *("_derive", "_make_storage", "_storage", "_value"),
        *("sizes", "derivations", "dtype", "name", "part", "shape", "was_read"),
    )

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DataType,
        value: Array | Callable[[], Array | None] | None = None,
        make_storage: Callable[[], Storage] | None = None,
        derive: Callable[[str, Make], Operand] | None = None,
        storage: Storage | None = None,
        part: StorageRange | None = None,
        sizes: tuple[int, ...] | None = None,
    ) -> None:
        self.sizes = sizes  # the values where they are sizes of a trace, which `value` would tie to these sizes
        self.part = part  # the range within another value's storage that holds it
        self.name, self.shape, self.dtype, self._value = name, TensorShape(shape), dtype, value
        self._make_storage, self._derive, self._storage = make_storage, derive, storage
        self.derivations: dict[str, tuple[Make, Operand]] = {}  # results of `derived`, by kind
        self.was_read = False  # whether `value` was used

    @property
    def pitch(self) -> int:
        """The number of elements from the start of one row to the start of the next. A row is the last dim."""
        return self.part.pitch if self.part is not None else self.shape[-1] if self.shape else 1

    @property
    def has_gaps(self) -> bool:
        """Whether elements of other values lie between its rows."""
        return self.part is not None and len(self.shape) > 0 and self.part.pitch != self.shape[-1]

    def lies_in(self, whole: Operand, first: int) -> bool:
        """Whether its data is part of `whole`'s: it begins at element `first` of `whole` and keeps the same rows."""
        if self.part is None:
            return False
        name, begin = (whole.name, 0) if whole.part is None else (whole.part.whole, whole.part.first)
        row = whole.shape[-1] if whole.shape else 1
        return self.part.whole == name and self.part.first == begin + first // row * whole.pitch + first % row

    @classmethod
    def of(cls, array: Array) -> Operand:
        """An operand of known values that has no storage."""
        return cls("", array.shape, DataType.of(array.dtype), array)

    @property
    def value(self) -> Array | None:
        """The values, if they are known. Use `is_constant` to ask only whether they are known."""
        self.was_read = True
        if callable(self._value):
            self._value = self._value()
        return self._value

    def ints(self) -> tuple[int, ...] | None:
        """Return the values as ints, or None unless all are known. Sizes of a trace stay symbolic."""
        if self.sizes is not None or self.value is None:
            return self.sizes
        return tuple(int(number) for number in self.value.ravel())

    @property
    def is_constant(self) -> bool:
        """Whether the values are known."""
        return self._value is not None

    def derived(self, kind: str, make: Make) -> Operand:
        """Return `make(value)` as an operand, such as weights in a kernel's order. All plans share one result.

        `kind` names the result. It must differ wherever anything but the values changes the result.
        """
        if self._derive is None:
            assert self.value is not None
            return Operand.stored(make(self.value))
        made = self._derive(kind, make)
        self.derivations[kind] = make, made
        return made

    @classmethod
    def stored(cls, array: Array) -> Operand:
        """An operand of known values in separate host memory."""
        storage = HostStorage.over(array)
        return cls("", array.shape, storage.dtype, array, storage=storage)

    @property
    def has_storage(self) -> bool:
        """Whether its storage is there already."""
        return self._storage is not None

    @property
    def storage(self) -> Storage:
        """The storage of the data. The first use allocates it, and uploads a constant."""
        if self._storage is None:
            if self._make_storage is None:
                raise BackendError(f"value {self.name!r} has no storage")
            self._storage = self._make_storage()
        return self._storage


Scratch = Callable[[Sequence[int], DataType], Operand]
