"""Shapes with unknown dims, and what is known of a tensor before it exists."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError
from perframe.tensor import DataType, TensorShape

Dim = int | str | None  # a number, a named dim, or unknown


class DynamicTensorShape(tuple[Dim, ...]):
    """A shape of ints, named dims (str) and unknowns (None)."""

    def __new__(cls, dims: Iterable[Dim] = ()) -> DynamicTensorShape:
        """Of ints, names and None."""
        return super().__new__(cls, (int(d) if isinstance(d, (int, np.integer)) else d for d in dims))

    @property
    def rank(self) -> int:
        """How many dims."""
        return len(self)

    @property
    def is_static(self) -> bool:
        """Whether all dims are known."""
        return all(isinstance(dim, int) for dim in self)

    @property
    def size(self) -> int | None:
        """How many elements, where that is known."""
        return math.prod(dim for dim in self if isinstance(dim, int)) if self.is_static else None

    def to_shape(self) -> TensorShape:
        """The concrete shape. Raises InferenceError where a dim is unknown."""
        if not self.is_static:
            raise InferenceError(f"shape {self} is not fully known")
        return TensorShape(dim for dim in self if isinstance(dim, int))

    def bind(self, dims: Mapping[str, int]) -> DynamicTensorShape:
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

    def __repr__(self) -> str:
        return f"({', '.join('?' if dim is None else str(dim) for dim in self)})"


@dataclass(frozen=True, eq=False)
class PartialTensor:
    """What is known of a tensor: its dtype, its shape (None: not even the rank), and maybe its values.

    `elements` carries partly known values of a small integer tensor of rank 0 or 1, as shape arithmetic needs them.
    """

    dtype: DataType
    shape: DynamicTensorShape | None = None
    value: NDArray[Any] | None = None
    partial: tuple[Dim, ...] | None = None
    kind: str = "tensor"  # or "sequence" of tensors, or "optional"
    element_kind: str = "tensor"  # of an optional

    @classmethod
    def of(cls, value: NDArray[Any]) -> PartialTensor:
        """All is known."""
        return cls(DataType.of(value.dtype), DynamicTensorShape(value.shape), value)

    @property
    def rank(self) -> int | None:
        """How many dims, where that is known."""
        return None if self.shape is None else len(self.shape)

    @property
    def elements(self) -> tuple[Dim, ...] | None:
        """The values of an integer tensor of rank 0 or 1, as far as they are known; None: nothing is."""
        if self.value is not None and self.value.ndim <= 1 and self.value.dtype.kind in "iu":
            return tuple(int(v) for v in self.value.ravel())
        return self.partial

    def ints(self) -> tuple[int, ...] | None:
        """The values as ints, if all are known."""
        if self.value is not None:
            return tuple(int(v) for v in np.ravel(self.value))
        known = self.partial
        if known is not None and all(isinstance(dim, int) for dim in known):
            return tuple(dim for dim in known if isinstance(dim, int))
        return None

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
