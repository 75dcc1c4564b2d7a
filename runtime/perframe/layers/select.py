"""Layers that select the largest or smallest elements along an axis: the first one's index, or the first k in order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.shape_arithmetic import listed
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Selection:
    """The first `count` elements of rows of `size` elements, `inner` apart.

    Of equal elements the one with the lower index comes first, or with `last` the one with the higher index. Of a
    single element's index, NaN comes first, as NumPy has it; in order, NaN counts as larger than all numbers.

    `result` is "indices", "marks" (1 for the first, 0 elsewhere) or "elements" in order with their indices.
    """

    result: str
    outer: int
    size: int
    inner: int
    count: int
    largest: bool
    last: bool = False


def _form(result: str, x: Known, axis: int, count: int, largest: bool, last: bool = False) -> Selection:
    at = normalize_axis(axis, len(x.shape))
    size = x.shape[at] if x.shape else 1
    return Selection(result, math.prod(x.shape[:at]), size, math.prod(x.shape[at + 1 :]), count, largest, last)


def _index(x: PartialTensor, axis: int, keepdims: int) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None, DataType.INT64)
    at = normalize_axis(axis, len(x.shape))
    if x.shape and x.shape[at] == 0:
        raise InferenceError(f"axis {at} of {x} has no elements, so none is the largest or smallest")
    middle = [1] if keepdims and x.shape else []
    return x.with_shape((*x.shape[:at], *middle, *x.shape[at + 1 :]), DataType.INT64)


@layer()
def ArgMax(x: PartialTensor, *, axis: int = 0, keepdims: Flag = 1, select_last_index: Flag = 0) -> PartialTensor:
    return _index(x, axis, keepdims)


@ArgMax.form
def _arg_max(
    inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int, keepdims: int, select_last_index: int
) -> Selection:
    return _form("indices", inputs[0], axis, 1, True, bool(select_last_index))


@layer()
def ArgMin(x: PartialTensor, *, axis: int = 0, keepdims: Flag = 1, select_last_index: Flag = 0) -> PartialTensor:
    return _index(x, axis, keepdims)


@ArgMin.form
def _arg_min(
    inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int, keepdims: int, select_last_index: int
) -> Selection:
    return _form("indices", inputs[0], axis, 1, False, bool(select_last_index))


@layer()
def Hardmax(x: PartialTensor, *, axis: int = -1) -> PartialTensor:
    if x.shape is not None:
        normalize_axis(axis, len(x.shape))
    return x.with_shape(x.shape)


@Hardmax.form
def _hardmax(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Selection:
    return _form("marks", inputs[0], axis, 1, True)


@layer(host=("k",))
def TopK(
    x: PartialTensor, k: PartialTensor, *, axis: int = -1, largest: Flag = 1, sorted: Flag = 1
) -> tuple[PartialTensor, PartialTensor]:
    if x.shape is None:
        return x.with_shape(None), x.with_shape(None, DataType.INT64)
    at = normalize_axis(axis, len(x.shape))
    counts, size = listed(k), x.shape[at]
    count = counts[0] if counts else None
    if isinstance(count, int) and (count < 0 or (isinstance(size, int) and count > size)):
        raise InferenceError(f"axis {at} of {x} has no {count} elements to select")
    dims = (*x.shape[:at], count, *x.shape[at + 1 :])
    return x.with_shape(dims), x.with_shape(dims, DataType.INT64)


@TopK.form
def _top_k(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int, largest: int, sorted: int) -> Selection:
    at = normalize_axis(axis, len(inputs[0].shape))
    return _form("elements", inputs[0], axis, outputs[0].shape[at], bool(largest))
