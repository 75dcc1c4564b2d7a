"""Layers that write where other inputs say: the first input with some of its elements replaced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perframe.errors import InferenceError
from perframe.layers.base import Known, layer, normalize_axis
from perframe.layers.gather import Tuples, tuples
from perframe.layers.geometry import Ints, row_major
from perframe.spec import PartialTensor

REDUCTIONS = ("none", "add", "mul", "max", "min")


@dataclass(frozen=True)
class Scattering:
    """The update at c, in dims of `extent`, goes to c with the coordinate on `axis` replaced by an index.

    Data has dims of `shape`; the index of c lies at sum(c * steps). Where `by` is given, indices are tuples, and the
    rows that they name are the first of two dims. `reduction` says how an update meets what is there.
    """

    reduction: str
    shape: Ints
    extent: Ints
    steps: Ints
    axis: int
    by: Tuples | None = None


@dataclass(frozen=True)
class Rows:
    """Data of (batch, outer, size, inner), of which `count` rows from a place of the batch's own are replaced.

    Beyond the end, a circular one begins again at 0.
    """

    batch: int
    outer: int
    size: int
    inner: int
    count: int
    circular: bool


def _known_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise InferenceError(f"there is no reduction {reduction!r}, only {', '.join(REDUCTIONS)}")


@layer()
def ScatterElements(
    x: PartialTensor, indices: PartialTensor, updates: PartialTensor, *, axis: int = 0, reduction: str = "none"
) -> PartialTensor:
    _known_reduction(reduction)
    if x.shape is not None:
        normalize_axis(axis, len(x.shape))
        for other in (indices, updates):
            if other.shape is not None and len(other.shape) != len(x.shape):
                raise InferenceError(f"{other} does not have the rank of {x}")
    return x.with_shape(x.shape)


@ScatterElements.form
def _scatter_elements(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int, reduction: str) -> Scattering:
    shape, extent = tuple(inputs[0].shape), tuple(inputs[1].shape)
    if extent != tuple(inputs[2].shape):
        raise InferenceError(f"updates of {inputs[2].shape} do not fit indices of {extent}")
    at = normalize_axis(axis, len(shape))
    if any(have > most for place, (have, most) in enumerate(zip(extent, shape, strict=True)) if place != at):
        raise InferenceError(f"indices of {extent} reach beyond data of {shape}")
    return Scattering(reduction, shape, extent, row_major(extent), at)


@layer()
def ScatterND(
    x: PartialTensor, indices: PartialTensor, updates: PartialTensor, *, reduction: str = "none"
) -> PartialTensor:
    _known_reduction(reduction)
    depth = indices.shape[-1] if indices.shape else None
    if x.shape is not None and isinstance(depth, int) and depth > len(x.shape):
        raise InferenceError(f"tuples of {depth} indices do not name elements of {x}")
    return x.with_shape(x.shape)


@ScatterND.form
def _scatter_nd(inputs: Sequence[Known], outputs: Sequence[Known], *, reduction: str) -> Scattering:
    by = tuples(inputs[0].shape, inputs[1].shape)
    if math.prod(inputs[2].shape) != by.count * by.inner:
        raise InferenceError(f"updates of {inputs[2].shape} are not {by.count} rows of {by.inner} elements")
    return Scattering(reduction, (by.rows, by.inner), (by.count, by.inner), (1, 0), 0, by)


@layer()
def TensorScatter(
    x: PartialTensor,
    update: PartialTensor,
    write_indices: PartialTensor | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> PartialTensor:
    if mode not in ("linear", "circular"):
        raise InferenceError(f"TensorScatter has no mode {mode!r}")
    if x.shape is not None and normalize_axis(axis, len(x.shape)) == 0:
        raise InferenceError("TensorScatter's axis cannot be that of the batch, 0")
    if x.shape is not None and update.shape is not None and len(x.shape) != len(update.shape):
        raise InferenceError(f"an update of {update} does not fit {x}")
    return x.with_shape(x.shape)


@TensorScatter.form
def _tensor_scatter(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int, mode: str) -> Rows:
    shape, update = inputs[0].shape, inputs[1].shape
    at = normalize_axis(axis, len(shape))
    fits = [a == b for a, b in zip(shape, update, strict=True)]
    fits[at] = update[at] <= shape[at]
    if not all(fits):
        raise InferenceError(f"an update of {update} does not fit {shape} on axis {at}")
    outer, inner = math.prod(shape[1:at]), math.prod(shape[at + 1 :])
    return Rows(shape[0], outer, shape[at], inner, update[at], mode == "circular")
