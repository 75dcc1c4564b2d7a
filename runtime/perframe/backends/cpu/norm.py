"""Softmax and local response normalisation on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.casting import accumulator
from perframe.backends.cpu.lowering import SPLIT_ELEMENTS, all_float32, step
from perframe.backends.cpu.program import NativeStep
from perframe.layers.norm import Neighbours, Softmaxing

# ONNX rounds every step of a softmax to the tensor's own type; over longer rows a narrow type would lose the sum
SHORT_ROW = 64


def compute(
    layer: LayerLike, form: Softmaxing | Neighbours, inputs: Sequence[Any], outputs: Sequence[Operand]
) -> list[Any]:
    """In float32 at least, but for softmax over short rows."""
    x = inputs[0]
    if not isinstance(form, Softmaxing):
        return [_local_response(x.astype(accumulator(x.dtype), copy=False), form)]
    return [_softmax(x if form.size <= SHORT_ROW else x.astype(accumulator(x.dtype), copy=False), form)]


def _softmax(x: Any, form: Softmaxing) -> Any:
    """Shifted by the largest, so that nothing overflows."""
    x = x.reshape(form.outer, form.size, form.inner)
    shifted = x - x.max(1, keepdims=True, initial=x.dtype.type(-np.inf))
    total = np.exp(shifted).sum(1, keepdims=True)
    return shifted - np.log(total) if form.logarithm else np.exp(shifted) / total


def _local_response(x: Any, form: Neighbours) -> Any:
    """Squares shifted channel by channel, and summed up."""
    x = x.reshape(form.outer, form.channels, form.inner)
    squares = np.pad(x * x, ((0, 0), (form.before, form.after), (0, 0)))
    total = sum(squares[:, k : k + form.channels] for k in range(form.before + form.after + 1))
    return x / (form.bias + form.alpha * total) ** form.beta


def lower(
    layer: LayerLike,
    form: Softmaxing | Neighbours,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Softmax of float32 rows."""
    x = inputs[0]
    if x is None or not isinstance(form, Softmaxing) or not all_float32([x]):
        return None
    numbers = [form.size, form.inner, int(form.logarithm)]
    items = form.outer * form.inner
    grain = max(1, items * SPLIT_ELEMENTS // max(1, 4 * items * form.size))  # an exponential is some four copies
    return [step(layer, "norm.softmax", [x, outputs[0]], numbers, items, grain=grain)]
