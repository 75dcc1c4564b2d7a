"""Layers that read elements at the indices in another input."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perframe.errors import InferenceError
from perframe.ir.attributes import Natural
from perframe.ir.bounds import Bounds
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.form import Bounded, Followed
from perframe.ir.geometry import Ints, row_major
from perframe.ir.shape_arithmetic import Values, numbers_of
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.ir.sizes.size import specialized
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Indexing(Bounded, Followed):
    """Data of (outer, size, inner); output (outer, count, inner). A negative index counts from the end."""

    outer: int
    size: int
    inner: int
    count: int

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the indices."""
        return (Bounds(1, (self.size,)),)

    def of_values(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Values:
        """Return the values at known indices; all others are unknown."""
        x, indices = inputs[:2]
        assert x is not None and indices is not None
        rows = numbers_of(x).reshape(self.outer, self.size, self.inner)
        result = np.full((self.outer, self.count, self.inner), None, object)
        for at, index in enumerate(numbers_of(indices).flat):
            if isinstance(index, int):
                result[:, at] = rows[:, index]
        return result


@layer()
def Gather(x: PartialTensor, indices: PartialTensor, *, axis: int = 0) -> PartialTensor:
    if x.shape is None or indices.shape is None:
        return x.with_shape(None)
    at = normalize_axis(axis, len(x.shape))
    return x.with_shape((*x.shape[:at], *indices.shape, *x.shape[at + 1 :]))


@Gather.form
def _gather(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Indexing:
    shape = inputs[0].shape
    at = normalize_axis(axis, len(shape))
    return Indexing(math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :]), math.prod(inputs[1].shape))


@dataclass(frozen=True)
class Elements(Bounded):
    """The output element at c is the data's element at c', where the index at c replaces the coordinate on one axis.

    `shape` is the shape of the indices. `strides` are those of the data, with 0 for the axis; the axis has `size`
    elements, `step` apart.
    """

    shape: Ints
    strides: Ints
    size: int
    step: int

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the indices."""
        return (Bounds(1, (self.size,)),)


def check_extent(x: PartialTensor, indices: PartialTensor, axis: int) -> None:
    """Raise InferenceError if the indices have another rank than x, or are longer on an axis other than `axis`."""
    if x.shape is None or indices.shape is None:
        return
    if len(x.shape) != len(indices.shape) or not x.shape:
        raise InferenceError(f"the indices {indices} do not have the rank of {x}")
    at = normalize_axis(axis, len(x.shape))
    for other, (have, most) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if other != at and isinstance(have, int) and isinstance(most, int) and have > most:
            raise InferenceError(f"the indices {indices} reach beyond {x} on axis {other}")


@layer()
def GatherElements(x: PartialTensor, indices: PartialTensor, *, axis: int = 0) -> PartialTensor:
    check_extent(x, indices, axis)
    return x.with_shape(indices.shape)


@GatherElements.form
def _gather_elements(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Elements:
    shape = inputs[0].shape
    at, strides = normalize_axis(axis, len(shape)), list(row_major(shape))
    step, strides[at] = strides[at], 0
    return Elements(tuple(inputs[1].shape), tuple(strides), shape[at], step)


@dataclass(frozen=True)
class Tuples(Bounded):
    """Each of `batch` parts has `count` tuples of indices. A tuple names a row of `inner` elements in dims `dims`."""

    batch: int
    count: int
    dims: Ints
    inner: int

    @property
    def rows(self) -> int:
        """The number of rows of a batch that tuples can name."""
        return math.prod(self.dims)

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the indices."""
        return (Bounds(1, self.dims),)


def tuples(shape: Sequence[int], indices: Sequence[int], batch_dims: int = 0) -> Tuples:
    """Return the form of tuples of indices into data of a shape, after its batch dims."""
    end = batch_dims + specialized(indices[-1])
    return Tuples(
        math.prod(shape[:batch_dims]),
        math.prod(indices[batch_dims:-1]),
        tuple(shape[batch_dims:end]),
        math.prod(shape[end:]),
    )


@layer()
def GatherND(x: PartialTensor, indices: PartialTensor, *, batch_dims: Natural = 0) -> PartialTensor:
    if x.shape is None or indices.shape is None or not indices.shape:
        return x.with_shape(None)
    if not isinstance(indices.shape[-1], int):
        return x.with_shape(None)
    depth, rank = specialized(indices.shape[-1]), len(x.shape)
    if not 0 <= batch_dims < len(indices.shape) or depth + batch_dims > rank:
        raise InferenceError(f"indices {indices} with {batch_dims} batch dims do not name elements of {x}")
    if not DynamicTensorShape(x.shape[:batch_dims]).may_be(indices.shape[:batch_dims]):
        raise InferenceError(f"the {batch_dims} batch dims of the indices {indices} are not those of {x}")
    return x.with_shape((*indices.shape[:-1], *x.shape[batch_dims + depth :]))


@GatherND.form
def _gather_nd(inputs: Sequence[Known], outputs: Sequence[Known], *, batch_dims: int) -> Tuples:
    return tuples(inputs[0].shape, inputs[1].shape, batch_dims)
