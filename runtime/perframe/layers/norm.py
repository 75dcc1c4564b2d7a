"""Normalisations along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perframe.layers.base import Known, layer, normalize_axis
from perframe.spec import PartialTensor


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
