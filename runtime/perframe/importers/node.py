"""A node of a file on its way to layers: what adapters of any format ask for, and add."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.importers.builder import Builder
from perframe.ir import Value
from perframe.ir.sizes.partial import Dim
from perframe.tensor import DataType
from perframe.tensor.checks import too_large


class LayerMaker:
    """Adds layers to a builder. Their names, and those of their outputs, are like `like`."""

    def __init__(self, builder: Builder, like: str) -> None:
        self.builder, self.like = builder, like

    # --- layers ---

    def __call__(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:
        """Add a layer, and return its output."""
        return self.several(1, op, *inputs, **attributes)[0]

    def several(self, count: int, op: str, *inputs: Value | None, **attributes: Any) -> list[Value]:
        """Add a layer with `count` outputs, and return them."""
        return self.builder.layer(op, self.like, list(inputs), count, self.like, attributes)

    def constant(self, value: Any, dtype: Any) -> Value:
        """Return a constant."""
        return self.builder.constant(value, dtype)

    def ints(self, *values: int) -> Value:
        """Return a constant vector of int64."""
        return self.constant(values, np.int64)

    def number(self, value: float, like: Value) -> Value:
        """Return a constant number of the dtype of another value."""
        return self.constant(value, like.spec.dtype.numpy)

    def cast(self, value: Value, dtype: DataType) -> Value:
        """Return a value in a dtype."""
        if value.spec.dtype is dtype:
            return value
        known = self.known(value)
        if known is not None:
            return self.constant(known, dtype.numpy)
        return self("Cast", value, to=dtype)

    def long(self, value: Value) -> Value:
        """Return a value as int64, the dtype of shapes and indices in layers."""
        return self.cast(value, DataType.INT64)

    # --- facts ---

    def rank(self, value: Value) -> int:
        """Return the rank of a value. Raises NotImplementedError if it is unknown."""
        return len(self.shape(value))

    def shape(self, value: Value) -> tuple[Dim, ...]:
        """Return the dims of a value. Raises NotImplementedError if its rank is unknown."""
        shape = value.spec.shape
        if shape is None:
            raise NotImplementedError(f"the rank of its input {value.name!r} is unknown")
        return tuple(shape)

    def sizes(self, value: Value, *axes: int) -> list[int]:
        """Return dims of a value. Raises NotImplementedError if one is unknown."""
        shape = self.shape(value)
        found = [shape[axis] for axis in axes]
        if not all(isinstance(dim, int) for dim in found):
            raise NotImplementedError(f"dims {axes} of its input {value.name!r} of shape {shape} are not all known")
        return [int(dim) for dim in found if isinstance(dim, int)]

    def known(self, value: Value) -> NDArray[Any] | None:
        """Return the value of a constant, or of arithmetic with shapes; None if it is not known."""
        return value.spec.value if value.constant is None else value.constant

    def check_room(self, *shape: int) -> None:
        """Raise ValueError if a constant of this shape, which the adapter is about to make, would be too large."""
        reason = too_large(shape, DataType.INT64)
        if reason:
            raise ValueError(f"it needs a constant for its sizes: {reason}")
