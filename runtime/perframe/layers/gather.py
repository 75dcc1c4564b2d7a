"""Layers that read where other inputs say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perframe.layers.base import Known, layer, normalize_axis
from perframe.spec import DynamicTensorShape, PartialTensor


@dataclass(frozen=True)
class Indexing:
    """Data of (outer, size, inner); output (outer, count, inner). A negative index counts from the end."""

    outer: int
    size: int
    inner: int
    count: int


@layer()
def Gather(x: PartialTensor, indices: PartialTensor, *, axis: int = 0) -> PartialTensor:
    if x.shape is None or indices.shape is None:
        return x.with_shape(None)
    at = normalize_axis(axis, len(x.shape))
    dims = (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])
    chosen, values = indices.ints(), x.elements
    part = None
    if len(x.shape) == 1 and values is not None and chosen is not None and len(indices.shape) <= 1:
        part = tuple(values[index] for index in chosen)
    return PartialTensor(x.dtype, DynamicTensorShape(dims), None, part)


@Gather.form
def _gather(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Indexing:
    shape = inputs[0].shape
    at = normalize_axis(axis, len(shape))
    return Indexing(math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :]), math.prod(inputs[1].shape))
