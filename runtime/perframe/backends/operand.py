"""Values as a lowering sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from perframe.errors import BackendError
from perframe.tensor import DataType, HostStorage, Storage, TensorShape

Array = NDArray[Any]


Make = Callable[[Array], Array]


@dataclass(frozen=True)
class StorageRange:
    """Where a value lies within another one's storage, in elements: from `first` on, its rows `pitch` apart."""

    whole: str  # a value's name, which has storage of its own
    first: int
    pitch: int


class Operand:
    """A value as a lowering sees it: shape, dtype, values where they are known, and storage, made when it is first
    asked for.
    """

    __slots__ = (
        *("_derive", "_make_storage", "_storage", "_value"),
        *("derivations", "dtype", "name", "part", "shape", "was_read"),
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
    ) -> None:
        self.part = part  # where it lies within another value
        self.name, self.shape, self.dtype, self._value = name, TensorShape(shape), dtype, value
        self._make_storage, self._derive, self._storage = make_storage, derive, storage
        self.derivations: dict[str, tuple[Make, Operand]] = {}  # what was asked of `derived`
        self.was_read = False  # whether anyone looked at the values themselves

    @property
    def pitch(self) -> int:
        """The elements from one row, which is the last dim, to the next."""
        return self.part.pitch if self.part is not None else self.shape[-1] if self.shape else 1

    @property
    def has_gaps(self) -> bool:
        """Whether other values' elements lie between its rows."""
        return self.part is not None and len(self.shape) > 0 and self.part.pitch != self.shape[-1]

    def lies_in(self, whole: Operand, first: int) -> bool:
        """Whether its data is that of `whole` from this element on, in the same rows."""
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
        """The values, if they are known. Who only asks whether they are uses `is_constant`."""
        self.was_read = True
        if callable(self._value):
            self._value = self._value()
        return self._value

    @property
    def is_constant(self) -> bool:
        """Whether the values are known."""
        return self._value is not None

    def derived(self, kind: str, make: Make) -> Operand:
        """What `make` makes of a constant's values, such as weights in a kernel's order: made once for all plans.

        `kind` names what is made, and everything besides the values that it depends on.
        """
        if self._derive is None:
            assert self.value is not None
            return Operand.stored(make(self.value))
        made = self._derive(kind, make)
        self.derivations[kind] = make, made
        return made

    @classmethod
    def stored(cls, array: Array) -> Operand:
        """An operand of known values in host memory of its own."""
        storage = HostStorage.over(array)
        return cls("", array.shape, storage.dtype, array, storage=storage)

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


Scratch = Callable[[Sequence[int], DataType], Operand]
