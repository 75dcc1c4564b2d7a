"""Matrix products on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.lowering import all_float32, epilogue, float_array, step
from perframe.backends.cpu.program import NativeStep
from perframe.layers.matmul import Product


def _matrices(array: Any, batch: Sequence[int], rows: int, columns: int, strides: Sequence[int]) -> Any:
    flat = np.ascontiguousarray(array).reshape(-1)
    if not flat.size or not rows or not columns or 0 in batch:
        return np.zeros((*batch, rows, columns), flat.dtype)
    return np.lib.stride_tricks.as_strided(
        flat, (*batch, rows, columns), tuple(step * flat.itemsize for step in strides)
    )


def compute(layer: LayerLike, form: Product, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """NumPy's matmul of strided matrices."""
    a, b, bias = (*inputs, None)[:3]
    left = _matrices(a, form.batch, form.rows, form.depth, form.a_strides)
    right = _matrices(b, form.batch, form.depth, form.columns, form.b_strides)
    result = np.matmul(left, right)
    if form.alpha != 1.0:
        result = result * result.dtype.type(form.alpha)
    if bias is not None:
        result = result + bias * bias.dtype.type(form.beta)
    return [result]


def lower(
    layer: LayerLike, form: Product, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """float32."""
    a, b, bias = (*inputs, None)[:3]
    if a is None or b is None or not all_float32(inputs):
        return None
    text, parameters = epilogue(layer)
    scales = float_array((form.alpha, form.beta))
    numbers = [parameters.ctypes.data, scales.ctypes.data, int(bias is not None), form.rows, form.columns, form.depth]
    numbers += [len(form.batch), *form.batch, *form.a_strides, *form.b_strides, *form.bias_strides]
    operands = [a, b, a if bias is None else bias, outputs[0]]
    return [step(layer, "matmul", operands, numbers, form.batches * form.rows, text, [parameters, scales])]
