"""Reversal of the beginnings of sequences; each sequence has its own length."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.bounds import Bounds
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.form import Bounded
from perframe.ir.geometry import row_major
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Reversal(Bounded):
    """The first elements of each sequence are reversed; the second input says how many.

    A sequence has `times` elements, `time_step` apart; the `batches` sequences are `batch_step` apart.
    """

    times: int
    time_step: int
    batches: int
    batch_step: int

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the lengths."""
        return (Bounds(1, (self.times,), from_end=False, what="length"),)


@layer()
def ReverseSequence(
    x: PartialTensor, lengths: PartialTensor, *, batch_axis: int = 1, time_axis: int = 0
) -> PartialTensor:
    if x.shape is not None:
        batch, time = (normalize_axis(axis, len(x.shape)) for axis in (batch_axis, time_axis))
        if batch == time:
            raise InferenceError(f"batch_axis and time_axis are both {batch}")
        if lengths.shape is not None and not lengths.shape.may_be((x.shape[batch],)):
            raise InferenceError(f"{lengths} lengths do not fit the sequences of {x} on axis {batch}")
    return x.with_shape(x.shape)


@ReverseSequence.form
def _reverse(inputs: Sequence[Known], outputs: Sequence[Known], *, batch_axis: int, time_axis: int) -> Reversal:
    shape = inputs[0].shape
    batch, time = (normalize_axis(axis, len(shape)) for axis in (batch_axis, time_axis))
    strides = row_major(shape)
    return Reversal(shape[time], strides[time], shape[batch], strides[batch])
