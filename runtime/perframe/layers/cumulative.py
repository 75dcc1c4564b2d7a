"""Running sums and products along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Cumulation:
    """Running sums or products along rows of `size` elements, `inner` apart.

    Each element is combined with all elements before it, or with `reverse` with all elements behind it. With
    `exclusive` the element itself does not count.
    """

    combine: str  # sum or product
    outer: int
    size: int
    inner: int
    exclusive: bool
    reverse: bool


def _same(x: PartialTensor, axis: PartialTensor) -> PartialTensor:
    known = axis.ints()
    if x.shape is not None and known is not None:
        if len(known) != 1:
            raise InferenceError(f"axis is {known}, and one number is expected")
        normalize_axis(known[0], len(x.shape))
    return x.with_shape(x.shape)


def _form(combine: str, inputs: Sequence[Known], exclusive: int, reverse: int) -> Cumulation:
    shape, axis = inputs[0].shape, inputs[1].value
    assert axis is not None
    at = normalize_axis(int(axis.ravel()[0]), len(shape))
    size = shape[at] if shape else 1
    return Cumulation(combine, math.prod(shape[:at]), size, math.prod(shape[at + 1 :]), bool(exclusive), bool(reverse))


@layer(host=("axis",))
def CumSum(x: PartialTensor, axis: PartialTensor, *, exclusive: Flag = 0, reverse: Flag = 0) -> PartialTensor:
    return _same(x, axis)


@CumSum.form
def _cum_sum(inputs: Sequence[Known], outputs: Sequence[Known], *, exclusive: int, reverse: int) -> Cumulation:
    return _form("sum", inputs, exclusive, reverse)


@layer(host=("axis",))
def CumProd(x: PartialTensor, axis: PartialTensor, *, exclusive: Flag = 0, reverse: Flag = 0) -> PartialTensor:
    return _same(x, axis)


@CumProd.form
def _cum_prod(inputs: Sequence[Known], outputs: Sequence[Known], *, exclusive: int, reverse: int) -> Cumulation:
    return _form("product", inputs, exclusive, reverse)
