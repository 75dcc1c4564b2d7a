"""Views on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.casting import is_native
from perframe.backends.cpu.lowering import mover, strided_copy
from perframe.backends.cpu.program import NativeStep
from perframe.layers.geometry import View, row_major


def compute(layer: LayerLike, form: list[View] | None, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """A strided view of each output; without views, the same data with another shape."""
    if form is None:
        return [inputs[0].reshape(outputs[0].shape)]
    flat = np.ascontiguousarray(inputs[0]).reshape(-1)
    dtype = flat.dtype
    if not is_native(dtype):  # NumPy cannot make strided views of all of ml_dtypes'
        flat = flat.view(f"u{dtype.itemsize}")
    return [_strided(flat, view).view(dtype) for view in form]


def _strided(flat: Any, view: View) -> Any:
    if not math.prod(view.shape):
        return np.empty(view.shape, flat.dtype)
    steps = tuple(stride * flat.itemsize for stride in view.strides)
    return np.lib.stride_tricks.as_strided(flat[view.offset :], view.shape, steps)


def lower(
    layer: LayerLike,
    form: list[View] | None,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """A strided copy for each output."""
    x = inputs[0]
    if form is None or x is None or mover("move", x) is None or not all(math.prod(view.shape) for view in form):
        return None
    return [
        strided_copy(layer, x, y, view.shape, view.strides, row_major(view.shape), view.offset)
        for view, y in zip(form, outputs, strict=True)
    ]
