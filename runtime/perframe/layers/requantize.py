"""Quantized layers from bytes to bytes: sums and look-ups element by element, and averages.

The bytes of a tensor stand for floats with one scale. Scales and zero points are attributes; `to` is the dtype
of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.errors import InferenceError
from perframe.ir.declaration import Known, layer
from perframe.ir.geometry import Ints
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Sum:
    """sum((input - zero point) * factor), rounded with halves to even, plus `zero`, clamped."""

    factors: tuple[float, ...]
    zeros: Ints
    zero: int
    low: int
    high: int


@dataclass(frozen=True)
class LookupTable:
    """Element x of the table, or element 2^8 + x if x is negative."""


@dataclass(frozen=True)
class Mean:
    """The average over all dims but the first two of (batch, channels, *spatial), as a sum of its pixels."""

    batch: int
    channels: int
    pixels: int
    factor: float
    x_zero: int
    zero: int


@layer()
def QuantizedAdd(
    a: PartialTensor,
    b: PartialTensor,
    *,
    factors: Sequence[float],
    zeros: Sequence[int],
    zero: int,
    low: int,
    high: int,
    to: DataType,
) -> PartialTensor:
    if a.shape is not None and b.shape is not None and a.shape != b.shape:
        raise InferenceError(f"{a} and {b} cannot be added: their shapes differ")
    return a.with_shape(a.shape, to)


@QuantizedAdd.form
def _sum(inputs: Sequence[Known], outputs: Sequence[Known], *, to: DataType, **attributes: Any) -> Sum:
    factors, zeros = tuple(attributes.pop("factors")), tuple(attributes.pop("zeros"))
    return Sum(factors, zeros, **attributes)


@layer()
def LookUp(x: PartialTensor, table: PartialTensor) -> PartialTensor:
    return x.with_shape(x.shape, table.dtype)


@LookUp.form
def _table(inputs: Sequence[Known], outputs: Sequence[Known]) -> LookupTable:
    return LookupTable()


@layer(spatial=("x",))
def QuantizedMean(x: PartialTensor, *, factor: float, x_zero: int, zero: int, to: DataType) -> PartialTensor:
    """`factor` contains the scales, but not the number of pixels."""
    return x.with_shape(None if x.shape is None else (*x.shape[:2], *(1,) * (len(x.shape) - 2)), to)


@QuantizedMean.form
def _mean(
    inputs: Sequence[Known], outputs: Sequence[Known], *, factor: float, x_zero: int, zero: int, to: DataType
) -> Mean:
    shape = inputs[0].shape
    return Mean(shape[0], shape[1], shape.size // max(1, shape[0] * shape[1]), factor, x_zero, zero)
