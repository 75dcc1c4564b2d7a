"""Gathering on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.lowering import four_bytes, step
from perframe.backends.cpu.program import NativeStep
from perframe.layers.gather import Indexing
from perframe.tensor import DataType


def compute(layer: LayerLike, form: Indexing, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Rows taken by index."""
    rows = inputs[0].reshape(form.outer, form.size, form.inner)
    return [np.take(rows, inputs[1].reshape(-1), axis=1)]


def lower(
    layer: LayerLike, form: Indexing, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """A kernel for known int64 indices, which are checked here; unknown ones are NumPy's to check."""
    x, indices = inputs[0], inputs[1]
    if (
        x is None
        or indices is None
        or indices.dtype is not DataType.INT64
        or not four_bytes(x)
        or indices.value is None
    ):
        return None
    if indices.value.size and (indices.value.min() < -form.size or indices.value.max() >= form.size):
        return None
    numbers = [form.size, form.inner, form.count]
    return [step(layer, "gather", [x, indices, outputs[0]], numbers, form.outer * form.count)]
