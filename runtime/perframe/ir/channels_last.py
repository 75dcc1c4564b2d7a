"""Layers with the channels of their data as the last dim: (batch, *spatial, channels).

Their shape rules and forms are those for (batch, channels, *spatial): the dims are permuted before and after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from perframe.errors import InferenceError
from perframe.ir.declaration import Declaration, Known
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType, TensorShape

T = TypeVar("T")


def first(dims: Sequence[T]) -> tuple[T, ...]:
    """Return (batch, *spatial, channels) as (batch, channels, *spatial)."""
    return (dims[0], dims[-1], *dims[1:-1])


def last(dims: Sequence[T]) -> tuple[T, ...]:
    """Return (batch, channels, *spatial) as (batch, *spatial, channels)."""
    return (dims[0], *dims[2:], dims[1])


@dataclass(frozen=True)
class Seen:
    """A value with the shape that the forms take."""

    shape: TensorShape
    dtype: DataType
    value: Any | None = None

    def ints(self) -> tuple[int, ...] | None:
        """Return None: no form needs the numbers of data."""
        return None

    @classmethod
    def channels_first(cls, value: Known | None) -> Known | None:
        """Return the value with the channels as the second dim, without its numbers: no form needs those of data."""
        return None if value is None else cls(TensorShape(first(value.shape)), value.dtype)


def channels_last_outputs(
    declaration: Declaration, inputs: Sequence[PartialTensor | None], attributes: Mapping[str, Any]
) -> tuple[PartialTensor, ...]:
    """Return the outputs as partial tensors. Raises InferenceError."""
    given = [_first_of(value) if declaration.is_spatial(index) else value for index, value in enumerate(inputs)]
    outputs = declaration.outputs_for(given, attributes)
    return tuple(
        output.with_shape(None if output.shape is None else last(output.shape), output.dtype) for output in outputs
    )


def _first_of(value: PartialTensor | None) -> PartialTensor | None:
    if value is None or value.shape is None:
        return value
    if len(value.shape) < 3:
        raise InferenceError(f"{value} has no spatial dims")
    return value.with_shape(first(value.shape), value.dtype)
