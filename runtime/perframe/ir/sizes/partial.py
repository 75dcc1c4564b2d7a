"""Shapes with open dims, and partly known tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import floordiv
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError
from perframe.ir.sizes.division import exact_quotient
from perframe.ir.sizes.names import MAX_TEXT, NAMES, is_known, name_of, named, text_of, with_sizes
from perframe.ir.sizes.polynomials import Terms
from perframe.ir.sizes.scope import NotKnownError
from perframe.ir.sizes.size import Size, is_symbolic, specialized
from perframe.tensor import DataType, TensorShape

Dim = int | str | None  # a number, an open dim by its name or formula, or an unknown one


class DimFormula(str):
    """An open dim that follows from other dims, as a text such as `height/2`. `size` computes with it."""

    __slots__ = ("size",)
    size: Size

    def __deepcopy__(self, memo: object) -> DimFormula:
        return self

    def __reduce__(self) -> Any:
        return str, (str(self),)


def number_of(dim: Dim) -> Any:
    """Return the number of a dim, to compute with: an int, a symbolic size, or None for an unknown dim."""
    if isinstance(dim, str):
        return dim.size if isinstance(dim, DimFormula) else named(dim)
    return dim


def dim_of(number: Any) -> Dim:
    """Return the dim of a number: the inverse of `number_of`. A size of which a part is unknown is an unknown dim."""
    if type(number) is not Size or number.scope is not NAMES:
        return number  # type: ignore[no-any-return]
    return _dim_of(number.terms)


def _dim_of(terms: Terms) -> Dim:
    if not is_known(terms):
        return None
    name = name_of(terms)
    text = text_of(terms) if name is None else name
    if name is not None or len(text) > MAX_TEXT:
        return name
    made = DimFormula(text)
    made.size = Size(NAMES, terms)
    return made


def derived(function: Callable[..., Any], *dims: Dim) -> Dim:
    """Return the dim that a function of numbers makes of dims; None where it depends on unknown ones.

    The function may ask about its numbers. If the answer depends on open dims, the result is None too.
    """
    if None in dims:
        return None
    try:
        return dim_of(function(*map(number_of, dims)))
    except NotKnownError:
        return None


def dim_sum(*dims: Dim) -> Dim:
    """Return the sum of dims."""
    return derived(lambda *numbers: sum(numbers), *dims)


def dim_product(*dims: Dim) -> Dim:
    """Return the product of dims."""
    return 0 if 0 in dims else derived(lambda *numbers: math.prod(numbers), *dims)


def dim_quotient(whole: Dim, part: Dim) -> Dim:
    """Return the quotient of a product of dims by some of these dims, which may be 0."""
    a, b = number_of(whole), number_of(part)
    if is_symbolic(a) and is_symbolic(b):
        exact = exact_quotient(a.terms, b.terms)
        if exact is not None:
            return dim_of(Size(NAMES, exact) if any(exact) else exact[()])
    return derived(floordiv, whole, part)


class DynamicTensorShape(tuple[Dim, ...]):
    """A shape of ints, of open dims by name or formula (str), and of unknown ones (None)."""

    def __new__(cls, dims: Iterable[Any] = ()) -> DynamicTensorShape:
        """Make a shape from ints, names, symbolic sizes and None."""
        if type(dims) is cls:
            return dims
        if type(dims) is TensorShape:
            return super().__new__(cls, dims)
        return super().__new__(cls, [dim if type(dim) is int or type(dim) is str else _dim(dim) for dim in dims])

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self)

    @property
    def is_static(self) -> bool:
        """Whether all dims are known."""
        return all([isinstance(dim, int) for dim in self])

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
        return DynamicTensorShape(_with_sizes(dim, dims) for dim in self)

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
        sized = self.with_dims(names)
        return all(have == want for want, have in zip(sized, concrete, strict=True) if isinstance(want, int))

    def may_be(self, other: Iterable[Dim]) -> bool:
        """Whether this shape and another may be equal: equal rank, and no two known dims differ."""
        dims = tuple(other)
        both = zip(self, dims, strict=False)
        return len(self) == len(dims) and all(a == b for a, b in both if isinstance(a, int) and isinstance(b, int))

    def __repr__(self) -> str:
        return f"({', '.join('?' if dim is None else str(dim) for dim in self)})"


def _dim(given: Any) -> Dim:
    if isinstance(given, np.integer) or type(given) is bool:
        return int(given)
    return dim_of(given)


def _with_sizes(dim: Dim, sizes: Mapping[str, int]) -> Dim:
    if isinstance(dim, DimFormula):
        return dim_of(with_sizes(dim.size.terms, sizes))
    return sizes.get(dim, dim) if isinstance(dim, str) else dim


@dataclass(eq=False, slots=True)
class PartialTensor:
    """A partly known tensor: its dtype, its shape (None: the rank is unknown), and its values where they are known.

    `values` is an array of the dtype if all values are known numbers. In shape arithmetic it is an array of objects:
    numbers, symbolic sizes, and None for unknown values.

    Treat it as immutable. It is not a frozen dataclass, since a plan makes hundreds and freezing would take most of
    the time.
    """

    dtype: DataType
    shape: DynamicTensorShape | None = None
    values: NDArray[Any] | None = None
    kind: str = "tensor"  # or "sequence" of tensors, or "optional"
    element_kind: str = "tensor"  # the kind of an optional's element

    @classmethod
    def of(cls, value: NDArray[Any]) -> PartialTensor:
        """Make a PartialTensor from an array: all values are known."""
        return cls(DataType.of(value.dtype), DynamicTensorShape(value.shape), value)

    @classmethod
    def of_values(cls, dtype: DataType, values: Iterable[Any]) -> PartialTensor:
        """Make a PartialTensor from an array or a row of numbers, symbolic sizes and None."""
        if not isinstance(values, np.ndarray):
            row = list(values)
            values = np.empty(len(row), object)
            values[:] = row
        if values.dtype != object or all([value is not None and type(value) is not Size for value in values.flat]):
            values = values.astype(dtype.numpy)
        return cls(dtype, DynamicTensorShape(values.shape), values)

    @property
    def rank(self) -> int | None:
        """The number of dims, or None where it is unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def value(self) -> NDArray[Any] | None:
        """The values as an array of the dtype; None unless all are known numbers."""
        values = self.values
        return values if values is None or values.dtype != object or self.dtype is DataType.STRING else None

    @property
    def is_known(self) -> bool:
        """Whether all values are known numbers, or sizes of a trace."""
        return self.value is not None or (
            self.values is not None and all([isinstance(value, (int, float)) for value in self.values.flat])
        )

    def ints(self) -> tuple[int, ...] | None:
        """Return the values as ints, or None unless all are known. Sizes of a trace stay symbolic."""
        if self.value is not None:
            return tuple(int(value) for value in np.ravel(self.value))
        return tuple(self.values.flat) if self.values is not None and self.is_known else None

    def specialized_value(self) -> NDArray[Any]:
        """Return the values, which are all known, as an array of the dtype. Sizes of a trace are specialized."""
        if self.value is not None:
            return self.value
        assert self.values is not None
        numbers = np.array([specialized(value) for value in self.values.flat], self.dtype.numpy)
        return numbers.reshape(self.values.shape)

    def is_static(self) -> bool:
        """Whether the shape is fully known."""
        return self.shape is not None and self.shape.is_static

    def with_shape(self, dims: Iterable[Any] | None, dtype: DataType | None = None) -> PartialTensor:
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
