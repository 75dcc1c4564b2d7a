"""Layers that put several inputs into one output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perframe.errors import InferenceError
from perframe.layers.base import Known, layer, normalize_axis
from perframe.layers.geometry import Ints
from perframe.spec import Dim, DynamicTensorShape, PartialTensor


@dataclass(frozen=True)
class Joining:
    """Inputs of `outer` rows each, joined row by row: input i gives `runs[i]` elements to each row."""

    outer: int
    runs: Ints


@layer()
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
            known = [dim for dim in column if isinstance(dim, int)]
            dims.append(sum(known) if len(known) == len(column) else None)
            continue
        different = {dim for dim in column if isinstance(dim, int)}
        if len(different) > 1:
            raise InferenceError(
                f"{' and '.join(map(str, shapes))} cannot be joined on axis {at}: axis {position} differs"
            )
        dims.append(different.pop() if different else column[0])
    part: tuple[Dim, ...] | None = None
    if rank == 1 and all(value.elements is not None for value in inputs):
        part = tuple(dim for value in inputs for dim in value.elements or ())
    return PartialTensor(first.dtype, DynamicTensorShape(dims), None, part)


@Concat.form
def _concat(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Joining:
    shape = outputs[0].shape
    at = normalize_axis(axis, len(shape))
    inner = math.prod(shape[at + 1 :])
    return Joining(math.prod(shape[:at]), tuple(value.shape[at] * inner for value in inputs))
