"""Normalizations along an axis, and over neighboring channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Positive
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Softmaxing:
    """Rows of `size` elements, `inner` apart, are shifted by their largest, exponentiated and divided by their sum."""

    outer: int
    size: int
    inner: int
    logarithm: bool


def _form(x: Known, axis: int, logarithm: bool) -> Softmaxing:
    at = normalize_axis(axis, len(x.shape))
    size = x.shape[at] if x.shape else 1
    return Softmaxing(math.prod(x.shape[:at]), size, math.prod(x.shape[at + 1 :]), logarithm)


def _same(x: PartialTensor, axis: int) -> PartialTensor:
    if x.shape is not None:
        normalize_axis(axis, len(x.shape))
    return x.with_shape(x.shape)


@layer()
def Softmax(x: PartialTensor, *, axis: int = -1) -> PartialTensor:
    return _same(x, axis)


@Softmax.form
def _softmax(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Softmaxing:
    return _form(inputs[0], axis, False)


@layer()
def LogSoftmax(x: PartialTensor, *, axis: int = -1) -> PartialTensor:
    return _same(x, axis)


@LogSoftmax.form
def _log_softmax(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Softmaxing:
    return _form(inputs[0], axis, True)


@dataclass(frozen=True)
class Neighbours:
    """Each element of (outer, channels, inner) is divided by (bias + alpha * sum of squares) ** beta.

    The sum takes in the element's own channel, `before` channels below it and `after` channels above it.
    """

    outer: int
    channels: int
    inner: int
    before: int
    after: int
    alpha: float
    beta: float
    bias: float


@layer()
def LRN(
    x: PartialTensor, *, size: Positive, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> PartialTensor:
    if x.shape is not None and len(x.shape) < 2:
        raise InferenceError(f"{x} has no channels")
    return x.with_shape(x.shape)


@LRN.form
def _lrn(
    inputs: Sequence[Known], outputs: Sequence[Known], *, size: int, alpha: float, beta: float, bias: float
) -> Neighbours:
    batch, channels, *rest = inputs[0].shape
    before = (size - 1) // 2
    return Neighbours(batch, channels, math.prod(rest), before, size - 1 - before, alpha / size, beta, bias)
