"""Views on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.sizes import MAX_RANK
from perframe.backends.cpu.lowering.casting import is_native
from perframe.backends.cpu.lowering.lowering import mover, strided_copy
from perframe.backends.cpu.lowering.rows import through, walk
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.geometry import View, collapse, row_major


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
    """A strided copy for each output that does not lie within the input."""
    x = inputs[0]
    if form is None or x is None or mover("move", x) is None or not all(math.prod(view.shape) for view in form):
        return None
    if any(len(collapse(view.shape, (view.strides, row_major(view.shape)))[0]) > MAX_RANK for view in form):
        return None
    steps = []
    for view, y in zip(form, outputs, strict=True):
        if layer.declaration.cuts and y.lies_in(x, view.offset):
            continue
        read = walk(x, view.strides, view.shape, view.offset)
        written = walk(y, row_major(view.shape), view.shape)
        assert read is not None and written is not None
        steps.append(strided_copy(layer, x, y, view.shape, read[0], written[0], read[1]))
    return steps


def takes_gaps(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> list[Operand]:
    """Outputs, and an input whose rows are read whole or in chunks."""
    x = inputs[0]
    if layer.declaration.form_of is None or x is None or not x.shape or not x.shape[-1]:
        return []
    form: list[View] = layer.form(inputs, outputs)
    row = x.shape[-1]
    reads = all(through(view.strides, view.shape, view.offset, row, row + 1) is not None for view in form)
    writes = [
        y
        for y, view in zip(outputs, form, strict=True)
        if y.shape and y.shape[-1] and through(row_major(view.shape), view.shape, 0, y.shape[-1], 1)
    ]
    return [x, *writes] if reads else writes
