"""Softmax on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.lowering import all_float32, step
from perframe.backends.cpu.program import NativeStep
from perframe.layers.norm import Softmaxing


def compute(layer: LayerLike, form: Softmaxing, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Shifted by the largest, so that nothing overflows."""
    x = inputs[0].reshape(form.outer, form.size, form.inner)
    shifted = x - x.max(1, keepdims=True, initial=-np.inf)
    total = np.exp(shifted).sum(1, keepdims=True)
    return [shifted - np.log(total) if form.logarithm else np.exp(shifted) / total]


def lower(
    layer: LayerLike, form: Softmaxing, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """float32 rows."""
    x = inputs[0]
    if x is None or not all_float32([x]):
        return None
    numbers = [form.size, form.inner, int(form.logarithm)]
    return [step(layer, "norm.softmax", [x, outputs[0]], numbers, form.outer * form.inner)]
