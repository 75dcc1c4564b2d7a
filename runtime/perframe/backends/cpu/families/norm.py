"""Softmax and local response normalization on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import NEIGHBOURS, SOFTMAX
from perframe.backends.cpu.kernels.sizes import ROWS_TOGETHER, RUN, SHORT_ROW
from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.cpu.lowering.lowering import all_float32, float_array, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.norm import Neighbours, Softmaxing

# ONNX rounds every step of a softmax to the tensor's own dtype; over longer rows the sum would lose too many digits
ROUNDED_ROW = 64


def compute(
    layer: LayerLike, form: Softmaxing | Neighbours, inputs: Sequence[Any], outputs: Sequence[Operand]
) -> list[Any]:
    """Compute in float32 or wider; a softmax over short rows computes in the tensor's own dtype."""
    x = inputs[0]
    if not isinstance(form, Softmaxing):
        return [_local_response(x.astype(accumulator(x.dtype), copy=False), form)]
    return [_softmax(x if form.size <= ROUNDED_ROW else x.astype(accumulator(x.dtype), copy=False), form)]


def _softmax(x: Any, form: Softmaxing) -> Any:
    """Subtract the largest element first, so that nothing overflows."""
    x = x.reshape(form.outer, form.size, form.inner)
    shifted = x - x.max(1, keepdims=True, initial=x.dtype.type(-np.inf))
    total = np.exp(shifted).sum(1, keepdims=True)
    return shifted - np.log(total) if form.logarithm else np.exp(shifted) / total


def _local_response(x: Any, form: Neighbours) -> Any:
    """Add up the squares, shifted channel by channel."""
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
    """Native steps for float32."""
    x = inputs[0]
    if x is None or not all_float32([x]) or layer.epilogue or layer.channels_last:
        return None
    runs = form.outer * -(-form.inner // RUN)
    if isinstance(form, Neighbours):
        parameters = float_array((form.alpha, form.beta, form.bias))
        sizes = {"channels": form.channels, "inner": form.inner, "before": form.before, "after": form.after}
        numbers = NEIGHBOURS.numbers(parameters=parameters.ctypes.data, **sizes)
        operands = NEIGHBOURS.operands(x=x, out=outputs[0])
        grain = sharing(runs, 16 * x.shape.size)  # a power and a window cost some sixteen copies
        return [step(layer, "norm.neighbours", operands, numbers, runs, keep=[parameters], grain=grain)]
    items = runs
    if form.inner == 1:
        items = -(-form.outer // ROWS_TOGETHER) if form.size < SHORT_ROW else form.outer
    sizes = {"size": form.size, "inner": form.inner, "outer": form.outer}
    numbers = SOFTMAX.numbers(takes_logarithm=int(form.logarithm), **sizes)
    operands = SOFTMAX.operands(x=x, out=outputs[0])
    grain = sharing(items, 4 * x.shape.size)  # an exponential costs some four copies
    return [step(layer, "norm.softmax", operands, numbers, items, grain=grain)]
