"""Shapes with unknown dims, and partly known tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError
from perframe.sizes.traced import WHOLE, is_followed
from perframe.tensor import DataType, TensorShape

Dim = int | str | None  # a number, a named dim, or unknown

MAX_ENTRIES = 1024  # larger tensors are not shape arithmetic, and their values are not followed
MAX_UNKNOWN = 64  # the limit for tensors without any known value
FOLLOWED = (DataType.INT64, DataType.INT32, DataType.BOOL, DataType.FLOAT32, DataType.FLOAT64)


class NotKnownError(Exception):
    """The truth of a comparison depends on an unknown number."""


class Symbol:
    """An unknown integer in arithmetic. If the number is the size of a named dim, the symbol has its name.

    Arithmetic returns a result where it follows (`n * 1` is n, `n >= 0` is true), and a new symbol elsewhere. Formulas
    in NumPy take arrays of symbols. The truth of a symbol (`bool`) raises NotKnownError.
    """

    __slots__ = ("name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def _is(self, other: Any) -> bool:
        return isinstance(other, Symbol) and self.name is not None and self.name == other.name

    def __add__(self, other: Any) -> Any:
        return self if _equals(other, 0) else Symbol()

    def __sub__(self, other: Any) -> Any:
        return 0 if self._is(other) else self + other

    def __rsub__(self, other: Any) -> Any:
        return Symbol()

    def __mul__(self, other: Any) -> Any:
        return 0 if _equals(other, 0) else self if _equals(other, 1) else Symbol()

    def __floordiv__(self, other: Any) -> Any:
        return self if _equals(other, 1) else Symbol()

    def __mod__(self, other: Any) -> Any:
        return 0 if _equals(other, 1) else Symbol()

    def __neg__(self) -> Any:
        return Symbol()

    def __abs__(self) -> Any:
        return self if self.name is not None else Symbol()

    def __and__(self, other: Any) -> Any:
        return other if _equals(other, 0) else Symbol()

    def __or__(self, other: Any) -> Any:
        return other if other is True else Symbol()

    __radd__, __rmul__, __rand__, __ror__ = __add__, __mul__, __and__, __or__

    def _compared(self, other: Any, same: bool, decides: Callable[[Any], bool], then: bool) -> Any:
        """Compare with `other`. The result is `same` if `other` is this symbol, `then` if `other` is a number that
        decides the comparison because no dim is negative, and a new symbol elsewhere.
        """
        if self._is(other):
            return same
        known = self.name is not None and not isinstance(other, Symbol)
        return then if known and decides(other) else Symbol()

    def __eq__(self, other: Any) -> Any:
        return self._compared(other, True, lambda number: number < 0, False)

    def __ne__(self, other: Any) -> Any:
        return self._compared(other, False, lambda number: number < 0, True)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, False, lambda number: number <= 0, False)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, True, lambda number: number < 0, False)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, False, lambda number: number < 0, True)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, True, lambda number: number <= 0, True)

    def __bool__(self) -> bool:
        raise NotKnownError


def _equals(value: Any, number: int) -> bool:
    return not isinstance(value, Symbol) and bool(value == number)


def is_number(entry: Any) -> bool:
    """Whether a dim or an entry of a partly known value is a known number."""
    return entry is not None and not isinstance(entry, str)


def to_number(entry: Any) -> Any:
    """Turn a dim or an entry into a number or a Symbol, for arithmetic."""
    return entry if is_number(entry) else Symbol(entry)


def to_entry(number: Any) -> Any:
    """Turn a result of arithmetic back into a dim or an entry."""
    return number.name if isinstance(number, Symbol) else number


def dim_sum(*dims: Dim) -> Dim:
    """Return the sum of dims. A named dim plus zeros keeps its name."""
    return to_entry(sum(map(to_number, dims)))  # type: ignore[no-any-return]


def dim_product(*dims: Dim) -> Dim:
    """Return the product of dims. A named dim times ones keeps its name."""
    return to_entry(math.prod(map(to_number, dims)))  # type: ignore[no-any-return]


class DynamicTensorShape(tuple[Dim, ...]):
    """A shape of ints, named dims (str) and unknowns (None)."""

    def __new__(cls, dims: Iterable[Dim] = ()) -> DynamicTensorShape:
        """Make a shape from ints, names and None."""
        if type(dims) is cls:
            return dims
        if type(dims) is TensorShape:
            return super().__new__(cls, dims)
        whole = [int(dim) if isinstance(dim, (int, np.integer)) and type(dim) not in WHOLE else dim for dim in dims]
        return super().__new__(cls, whole)

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self)

    @property
    def is_static(self) -> bool:
        """Whether all dims are known."""
        return all([type(dim) in WHOLE for dim in self])

    @property
    def size(self) -> int | None:
        """The number of elements, or None where a dim is unknown."""
        return math.prod(self) if self.is_static else None  # type: ignore[arg-type]

    def to_shape(self) -> TensorShape:
        """Return the concrete shape. Raises InferenceError where a dim is unknown."""
        if not self.is_static:
            raise InferenceError(f"shape {self} is not fully known")
        return tuple.__new__(TensorShape, self)

    def with_dims(self, dims: Mapping[str, int]) -> DynamicTensorShape:
        """Replace named dims by their values."""
        return DynamicTensorShape(dims.get(dim, dim) if isinstance(dim, str) else dim for dim in self)

    def accepts(self, shape: Iterable[int]) -> bool:
        """Whether a concrete shape fits: equal rank, equal known dims, and one size for each name."""
        concrete = tuple(shape)
        names: dict[str, int] = {}
        if len(concrete) != len(self):
            return False
        for want, have in zip(self, concrete, strict=True):
            if isinstance(want, int) and want != have:
                return False
            if isinstance(want, str) and names.setdefault(want, have) != have:
                return False
        return True

    def may_be(self, other: Iterable[Dim]) -> bool:
        """Whether this shape and another may be equal: equal rank, and no two known dims differ."""
        dims = tuple(other)
        both = zip(self, dims, strict=False)
        return len(self) == len(dims) and all(a == b for a, b in both if isinstance(a, int) and isinstance(b, int))

    def __repr__(self) -> str:
        return f"({', '.join('?' if dim is None else str(dim) for dim in self)})"


@dataclass(eq=False, slots=True)
class PartialTensor:
    """A partly known tensor: its dtype, its shape (None: the rank is unknown), and its values where they are known.

    `value` holds values that are all known. `entries` hold partly known values of shape arithmetic: an object array of
    numbers, of names (the number is the size of the dim of that name), and of None. Followed numbers (see
    sizes/traced.py) are entries even if all are known.

    Treat it as immutable. It is not a frozen dataclass, since a plan makes hundreds and freezing would take most of
    the time.
    """

    dtype: DataType
    shape: DynamicTensorShape | None = None
    value: NDArray[Any] | None = None
    entries: NDArray[Any] | None = None
    kind: str = "tensor"  # or "sequence" of tensors, or "optional"
    element_kind: str = "tensor"  # the kind of an optional's element

    @classmethod
    def of(cls, value: NDArray[Any]) -> PartialTensor:
        """Make a PartialTensor from an array: all values are known."""
        return cls(DataType.of(value.dtype), DynamicTensorShape(value.shape), value)

    @classmethod
    def of_entries(cls, dtype: DataType, entries: Iterable[Any]) -> PartialTensor:
        """Make a PartialTensor from an array of entries or of numbers, or from a row of entries."""
        if not isinstance(entries, np.ndarray):
            row = list(entries)
            entries = np.empty(len(row), object)
            entries[:] = row
        shape = DynamicTensorShape(entries.shape)
        if entries.dtype != object:
            return cls(dtype, shape, entries.astype(dtype.numpy))
        if all(map(is_number, entries.flat)) and not any(map(is_followed, entries.flat)):
            return cls(dtype, shape, entries.astype(dtype.numpy))
        return cls(dtype, shape, None, entries)

    @property
    def rank(self) -> int | None:
        """The number of dims, or None where it is unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def is_followed(self) -> bool:
        """Whether shape arithmetic follows the values: there are not too many, and they are not unknown floats."""
        if self.entries is not None or self.dtype not in FOLLOWED or self.kind != "tensor":
            return self.entries is not None
        if self.value is not None:
            return self.value.size <= MAX_ENTRIES
        size = None if self.dtype.is_float or self.shape is None else self.shape.size
        # a followed size says no: to compute with so many entries would tie the trace to this size
        return size is not None and not is_followed(size) and size <= MAX_UNKNOWN

    @property
    def known(self) -> NDArray[Any] | None:
        """The values as entries, or None where shape arithmetic does not follow them."""
        if self.entries is not None or not self.is_followed:
            return self.entries
        if self.value is not None:
            return np.asarray(self.value).astype(object)
        assert self.shape is not None
        return np.full(self.shape.to_shape(), None, object)

    @property
    def elements(self) -> tuple[Dim, ...] | None:
        """The entries of an integer tensor of rank 0 or 1, None for unknown values; None if no value is known."""
        if self.value is not None and self.value.ndim <= 1 and self.value.dtype.kind in "iu":
            return tuple(int(v) for v in self.value.ravel())
        if self.entries is None or self.entries.ndim > 1 or self.dtype.numpy.kind not in "iu":
            return None
        return tuple(self.entries.flat)

    def ints(self) -> tuple[int, ...] | None:
        """Return the values as ints, or None unless all are known."""
        if self.value is None:
            return tuple(self.entries.flat) if self.entries is not None and self.is_known else None
        return tuple(int(v) for v in np.ravel(self.value))

    @property
    def is_known(self) -> bool:
        """Whether all values are known, as an array or as followed numbers."""
        return self.value is not None or (self.entries is not None and all(map(is_number, self.entries.flat)))

    @property
    def bare_value(self) -> NDArray[Any] | None:
        """The values as an array, or None unless all are known. Followed numbers become bare."""
        if self.value is None and self.is_known:
            assert self.entries is not None
            return self.entries.astype(self.dtype.numpy)
        return self.value

    def is_static(self) -> bool:
        """Whether the shape is fully known."""
        return self.shape is not None and self.shape.is_static

    def with_shape(self, dims: Iterable[Dim] | None, dtype: DataType | None = None) -> PartialTensor:
        """Return a PartialTensor of this dtype (or another) with a shape and no known values."""
        return PartialTensor(dtype or self.dtype, None if dims is None else DynamicTensorShape(dims))

    def __str__(self) -> str:
        return f"{self.dtype} {'of unknown rank' if self.shape is None else self.shape}"


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """Broadcast two dims as NumPy does. Raises InferenceError where they do not broadcast."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) and isinstance(b, int):
        raise InferenceError(f"dims {a} and {b} do not broadcast")
    if isinstance(a, int):  # the other is unknown, and can only be 1 or `a`
        return a
    return b if isinstance(b, int) else None


def broadcast(*shapes: DynamicTensorShape | None) -> DynamicTensorShape | None:
    """Broadcast shapes as NumPy does. Returns None where a rank is unknown, and raises InferenceError where the shapes
    do not broadcast.
    """
    result: list[Dim] = []
    for shape in shapes:
        if shape is None:
            return None
        rank = max(len(result), len(shape))
        left = [1] * (rank - len(result)) + result
        right = [1] * (rank - len(shape)) + list(shape)
        try:
            result = [broadcast_dim(a, b) for a, b in zip(left, right, strict=True)]
        except InferenceError:
            listed = " and ".join(str(s) for s in shapes)
            raise InferenceError(f"shapes {listed} do not broadcast together") from None
    return DynamicTensorShape(result)
