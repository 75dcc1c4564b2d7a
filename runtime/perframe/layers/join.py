"""Layers that join several inputs into one output."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perframe.errors import InferenceError
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.form import Followed
from perframe.ir.geometry import Ints
from perframe.ir.shape_arithmetic import Values, numbers_of
from perframe.ir.sizes.partial import Dim, PartialTensor, dim_sum
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Joining(Followed):
    """Inputs of `outer` rows each are joined row by row: input i gives `runs[i]` elements to each row."""

    outer: int
    runs: Ints

    def of_values(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Values:
        """Return the values of the inputs, row by row."""
        parts = [numbers_of(value) for value in inputs if value is not None]
        return np.concatenate([part.reshape(self.outer, run) for part, run in zip(parts, self.runs, strict=True)], 1)


@layer(joins=True)
def Concat(*inputs: PartialTensor, axis: int) -> PartialTensor:
    shapes = [value.shape for value in inputs if value.shape is not None]
    first = inputs[0]
    if len(shapes) < len(inputs) or not shapes:
        return first.with_shape((None,) * len(shapes[0]) if shapes else None)
    rank = len(shapes[0])
    if any(len(shape) != rank for shape in shapes):
        raise InferenceError(f"inputs of different ranks cannot be joined: {' and '.join(map(str, shapes))}")
    at = normalize_axis(axis, rank)
    dims: list[Dim] = []
    for position in range(rank):
        column = [shape[position] for shape in shapes]
        if position == at:
            dims.append(dim_sum(*column))
            continue
        whole = [dim for dim in column if isinstance(dim, int)]
        if any(dim != whole[0] for dim in whole):
            raise InferenceError(
                f"{' and '.join(map(str, shapes))} cannot be joined on axis {at}: axis {position} differs"
            )
        named = [dim for dim in column if dim is not None]
        dims.append(whole[0] if whole else named[0] if named else None)
    return first.with_shape(dims)


@Concat.form
def _concat(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Joining:
    shape = outputs[0].shape
    at = normalize_axis(axis, len(shape))
    inner = math.prod(shape[at + 1 :])
    return Joining(math.prod(shape[:at]), tuple(value.shape[at] * inner for value in inputs))
