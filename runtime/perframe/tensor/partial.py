"""Shapes with unknown dims, and what is known of a tensor before it exists."""

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

MAX_ENTRIES = 1024  # values of larger tensors are no shape arithmetic, and not followed;
MAX_UNKNOWN = 64  # of those of which nothing is known, even fewer
FOLLOWED = (DataType.INT64, DataType.INT32, DataType.BOOL, DataType.FLOAT32, DataType.FLOAT64)


class NotKnownError(Exception):
    """Whether something holds depends on a number that is not known."""


class Symbol:
    """A whole number that is not known, or only by the name of the dim whose size it is, in arithmetic.

    What follows all the same is given back (`n * 1` is n, `n >= 0` is true); any other result is one more symbol.
    Formulas in NumPy take arrays of symbols. Asking for the truth of one raises NotKnownError.
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
        """`same` next to itself; `then` next to a number that decides it because no dim is negative."""
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
    """Whether a dim, or an entry of a partly known value, is known."""
    return entry is not None and not isinstance(entry, str)


def to_number(entry: Any) -> Any:
    """A dim or an entry as something to compute with."""
    return entry if is_number(entry) else Symbol(entry)


def to_entry(number: Any) -> Any:
    """The dim or entry that a result is."""
    return number.name if isinstance(number, Symbol) else number


def dim_sum(*dims: Dim) -> Dim:
    """The sum of dims; a name survives zeros."""
    return to_entry(sum(map(to_number, dims)))  # type: ignore[no-any-return]


def dim_product(*dims: Dim) -> Dim:
    """The product of dims; a name survives ones."""
    return to_entry(math.prod(map(to_number, dims)))  # type: ignore[no-any-return]


class DynamicTensorShape(tuple[Dim, ...]):
    """A shape of ints, named dims (str) and unknowns (None)."""

    def __new__(cls, dims: Iterable[Dim] = ()) -> DynamicTensorShape:
        """Of ints, names and None."""
        if type(dims) is cls:
            return dims
        if type(dims) is TensorShape:
            return super().__new__(cls, dims)
        whole = [int(dim) if isinstance(dim, (int, np.integer)) and type(dim) not in WHOLE else dim for dim in dims]
        return super().__new__(cls, whole)

    @property
    def rank(self) -> int:
        """How many dims."""
        return len(self)

    @property
    def is_static(self) -> bool:
        """Whether all dims are known."""
        return all([type(dim) in WHOLE for dim in self])

    @property
    def size(self) -> int | None:
        """How many elements, where that is known."""
        return math.prod(self) if self.is_static else None  # type: ignore[arg-type]

    def to_shape(self) -> TensorShape:
        """The concrete shape. Raises InferenceError where a dim is unknown."""
        if not self.is_static:
            raise InferenceError(f"shape {self} is not fully known")
        return tuple.__new__(TensorShape, self)

    def with_dims(self, dims: Mapping[str, int]) -> DynamicTensorShape:
        """Replace named dims by their values."""
        return DynamicTensorShape(dims.get(dim, dim) if isinstance(dim, str) else dim for dim in self)

    def accepts(self, shape: Iterable[int]) -> bool:
        """Whether a concrete shape fits: the same rank, the known dims equal, a name always the same value."""
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
        """Whether no dim is known to differ from another shape's."""
        dims = tuple(other)
        both = zip(self, dims, strict=False)
        return len(self) == len(dims) and all(a == b for a, b in both if isinstance(a, int) and isinstance(b, int))

    def __repr__(self) -> str:
        return f"({', '.join('?' if dim is None else str(dim) for dim in self)})"


@dataclass(eq=False, slots=True)
class PartialTensor:
    """What is known of a tensor: its dtype, its shape (None: not even the rank), and maybe its values. Nobody changes
    one; it is not frozen because a plan makes hundreds, and that would take most of the time.

    `entries` are partly known values, as shape arithmetic makes them: an object array of numbers, names of dims whose
    size the number is, and None. What is known whole is a `value`; but for numbers that are followed (see
    sizes/traced.py).
    """

    dtype: DataType
    shape: DynamicTensorShape | None = None
    value: NDArray[Any] | None = None
    entries: NDArray[Any] | None = None
    kind: str = "tensor"  # or "sequence" of tensors, or "optional"
    element_kind: str = "tensor"  # of an optional

    @classmethod
    def of(cls, value: NDArray[Any]) -> PartialTensor:
        """All is known."""
        return cls(DataType.of(value.dtype), DynamicTensorShape(value.shape), value)

    @classmethod
    def of_entries(cls, dtype: DataType, entries: Iterable[Any]) -> PartialTensor:
        """Of an object array of entries, or of a row of them."""
        if not isinstance(entries, np.ndarray):
            row = list(entries)
            entries = np.empty(len(row), object)
            entries[:] = row
        shape = DynamicTensorShape(entries.shape)
        if all(map(is_number, entries.flat)) and not any(map(is_followed, entries.flat)):
            return cls(dtype, shape, entries.astype(dtype.numpy))
        return cls(dtype, shape, None, entries)

    @property
    def rank(self) -> int | None:
        """How many dims, where that is known."""
        return None if self.shape is None else len(self.shape)

    @property
    def is_followed(self) -> bool:
        """Whether its values are entries of shape arithmetic: neither too many, nor floats that are not known."""
        if self.entries is not None or self.dtype not in FOLLOWED or self.kind != "tensor":
            return self.entries is not None
        if self.value is not None:
            return self.value.size <= MAX_ENTRIES
        size = None if self.dtype.is_float or self.shape is None else self.shape.size
        # nor are those of a tensor whose size is followed: that would tie a trace to this size
        return size is not None and not is_followed(size) and size <= MAX_UNKNOWN

    @property
    def known(self) -> NDArray[Any] | None:
        """The values as entries, where they are followed."""
        if self.entries is not None or not self.is_followed:
            return self.entries
        if self.value is not None:
            return np.asarray(self.value).astype(object)
        assert self.shape is not None
        return np.full(self.shape.to_shape(), None, object)

    @property
    def elements(self) -> tuple[Dim, ...] | None:
        """The values of an integer tensor of rank 0 or 1, as far as they are known; None: nothing is."""
        if self.value is not None and self.value.ndim <= 1 and self.value.dtype.kind in "iu":
            return tuple(int(v) for v in self.value.ravel())
        if self.entries is None or self.entries.ndim > 1 or self.dtype.numpy.kind not in "iu":
            return None
        return tuple(self.entries.flat)

    def ints(self) -> tuple[int, ...] | None:
        """The values as ints, if all are known."""
        if self.value is None:
            return tuple(self.entries.flat) if self.entries is not None and self.is_known else None
        return tuple(int(v) for v in np.ravel(self.value))

    @property
    def is_known(self) -> bool:
        """Whether all its values are: as an array, or as numbers that are followed."""
        return self.value is not None or (self.entries is not None and all(map(is_number, self.entries.flat)))

    @property
    def bare_value(self) -> NDArray[Any] | None:
        """All its values as an array, where they are known; numbers that are followed become bare."""
        if self.value is None and self.is_known:
            assert self.entries is not None
            return self.entries.astype(self.dtype.numpy)
        return self.value

    def is_static(self) -> bool:
        """Whether the shape is fully known."""
        return self.shape is not None and self.shape.is_static

    def with_shape(self, dims: Iterable[Dim] | None, dtype: DataType | None = None) -> PartialTensor:
        """A tensor of this dtype (or another) with a shape and no known values."""
        return PartialTensor(dtype or self.dtype, None if dims is None else DynamicTensorShape(dims))

    def __str__(self) -> str:
        return f"{self.dtype} {'of unknown rank' if self.shape is None else self.shape}"


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """The dim of NumPy's broadcasting. Raises InferenceError."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) and isinstance(b, int):
        raise InferenceError(f"dims {a} and {b} do not broadcast")
    if isinstance(a, int):  # the other is unknown, and can only be 1 or the same
        return a
    return b if isinstance(b, int) else None


def broadcast(*shapes: DynamicTensorShape | None) -> DynamicTensorShape | None:
    """The shape of NumPy's broadcasting; None when a rank is unknown. Raises InferenceError."""
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
