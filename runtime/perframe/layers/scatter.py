"""Layers that copy the first input and replace elements at the indices in another input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError
from perframe.ir.bounds import Bounds
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.form import Bounded, Replacing
from perframe.ir.geometry import Ints, View, row_major
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.ir.sizes.size import specialized
from perframe.layers.gather import Tuples, check_extent, tuples
from perframe.safety.records import dataclass

Reduction = Literal["none", "add", "mul", "max", "min"]


@dataclass(frozen=True)
class Scattering(Bounded, Replacing):
    """The update at c, in dims of `extent`, goes to c', where an index replaces the coordinate on `axis`.

    The data has dims of `shape`; the index for c is at sum(c * steps). With `by` indices are tuples, and the data has
    two dims, the first of which counts the rows that tuples name. `reduction` says how an update and the old element
    are combined. If known tuples name a slice, the updates replace the elements of the view `slice`.
    """

    reduction: str
    shape: Ints
    extent: Ints
    steps: Ints
    axis: int
    by: Tuples | None = None
    slice: View | None = None

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the indices."""
        return (Bounds(1, (self.shape[self.axis],) if self.by is None else self.by.dims),)

    @property
    def replaced(self) -> int | None:
        """The number of tuples that name rows."""
        return self.by.count if self.by is not None and self.reduction == "none" else None


@dataclass(frozen=True)
class RowUpdate(Bounded, Replacing):
    """Data of (batch, outer, size, inner); `count` rows of it are replaced. Each batch has its own first row.

    With `circular` rows beyond the end begin again at 0.
    """

    batch: int
    outer: int
    size: int
    inner: int
    count: int
    circular: bool

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the first replaced rows."""
        if self.circular:
            return ()
        return (Bounds(2, (self.size - self.count,), from_end=False, what="length"),)

    @property
    def replaced(self) -> int:
        """The number of replaced rows."""
        return self.batch * self.outer * self.count


@layer()
def ScatterElements(
    x: PartialTensor, indices: PartialTensor, updates: PartialTensor, *, axis: int = 0, reduction: Reduction = "none"
) -> PartialTensor:
    check_extent(x, indices, axis)
    if updates.shape is not None and indices.shape is not None and not updates.shape.may_be(indices.shape):
        raise InferenceError(f"updates {updates} do not fit indices {indices}")
    return x.with_shape(x.shape)


@ScatterElements.form
def _scatter_elements(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int, reduction: str) -> Scattering:
    shape, extent = tuple(inputs[0].shape), tuple(inputs[1].shape)
    at = normalize_axis(axis, len(shape))
    return Scattering(reduction, shape, extent, row_major(extent), at)


@layer()
def ScatterND(
    x: PartialTensor, indices: PartialTensor, updates: PartialTensor, *, reduction: Reduction = "none"
) -> PartialTensor:
    depth = indices.shape[-1] if indices.shape else None
    depth = specialized(depth) if isinstance(depth, int) else None
    if x.shape is not None and depth is not None and depth > len(x.shape):
        raise InferenceError(f"tuples of {depth} indices do not name elements of {x}")
    if x.shape is not None and indices.shape and depth is not None and updates.shape is not None:
        wanted = DynamicTensorShape((*indices.shape[:-1], *x.shape[depth:]))
        if not wanted.may_be(updates.shape):
            raise InferenceError(f"updates {updates} do not fit indices {indices} into {x}: {wanted} expected")
    return x.with_shape(x.shape)


@ScatterND.form
def _scatter_nd(inputs: Sequence[Known], outputs: Sequence[Known], *, reduction: str) -> Scattering:
    by, known = tuples(inputs[0].shape, inputs[1].shape), inputs[1].value
    found = None if known is None or reduction != "none" else _slice(known, by)
    return Scattering(reduction, (by.rows, by.inner), (by.count, by.inner), (1, 0), 0, by, found)


def _slice(indices: NDArray[Any], by: Tuples) -> View | None:
    """Return the view that tuples of indices name. None unless every index grows evenly, and along one axis at most:
    then no two tuples name the same row.
    """
    *shape, depth = indices.shape
    if not indices.size:
        return None
    first, growth = indices[(0,) * len(shape)], np.zeros((len(shape), depth), np.int64)
    for axis, dim in enumerate(shape):
        if dim > 1:
            growth[axis] = indices[(0,) * axis + (1,) + (0,) * (len(shape) - axis - 1)] - first
            if not growth[axis].any():
                return None
    coordinates = np.indices(shape, sparse=True)
    even = sum((at[..., None] * by_one for at, by_one in zip(coordinates, growth, strict=True)), start=first)
    if np.count_nonzero(growth, axis=0).max() > 1 or not np.array_equal(indices, even):
        return None
    columns = indices.reshape(-1, depth)
    strides, offset = [stride * by.inner for stride in row_major(by.dims)], 0
    for begin, low, high, dim, stride in zip(first, columns.min(0), columns.max(0), by.dims, strides, strict=True):
        end = dim if high < 0 else 0  # negative indices count from the end
        if low + end < 0 or high + end >= dim:
            return None
        offset += (int(begin) + end) * stride
    steps = [sum(int(by_one) * stride for by_one, stride in zip(row, strides, strict=True)) for row in growth]
    return View((*shape, by.inner), (*steps, 1), offset)


@layer()
def TensorScatter(
    x: PartialTensor,
    update: PartialTensor,
    write_indices: PartialTensor | None = None,
    *,
    axis: int = -2,
    mode: Literal["linear", "circular"] = "linear",
) -> PartialTensor:
    if x.shape is not None and normalize_axis(axis, len(x.shape)) == 0:
        raise InferenceError("TensorScatter's axis cannot be that of the batch, 0")
    if x.shape is not None and update.shape is not None and len(x.shape) != len(update.shape):
        raise InferenceError(f"an update of {update} does not fit {x}")
    batch = x.shape[:1] if x.shape is not None else (None,)
    if write_indices is not None and write_indices.shape is not None and not write_indices.shape.may_be(batch):
        raise InferenceError(f"write_indices {write_indices} are not one for each batch of {x}")
    if x.shape is None or update.shape is None:
        return x.with_shape(x.shape)
    at = normalize_axis(axis, len(x.shape))
    both = enumerate(zip(x.shape, update.shape, strict=True))
    return x.with_shape([new if isinstance(new, int) and n != at else old for n, (old, new) in both])


@TensorScatter.form
def _tensor_scatter(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int, mode: str) -> RowUpdate:
    shape, update = inputs[0].shape, inputs[1].shape
    at = normalize_axis(axis, len(shape))
    fits = [a == b for a, b in zip(shape, update, strict=True)]
    fits[at] = update[at] <= shape[at]
    if not all(fits):
        raise InferenceError(f"an update of {update} does not fit {shape} on axis {at}")
    outer, inner = math.prod(shape[1:at]), math.prod(shape[at + 1 :])
    return RowUpdate(shape[0], outer, shape[at], inner, update[at], mode == "circular")
