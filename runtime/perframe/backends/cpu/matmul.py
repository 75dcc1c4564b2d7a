"""Matrix products on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.casting import accumulator
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


def _product(left: Any, right: Any, depth: int) -> Any:
    """NumPy's matmul; whole numbers in float64 where that is exact, because only floats have fast products."""
    if left.dtype.kind not in "iu":
        wide = accumulator(left.dtype)
        return np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
    largest = [max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0 for x in (left, right)]
    if largest[0] * largest[1] * depth >= 2**53:
        return np.matmul(left, right)
    return np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)


def compute(layer: LayerLike, form: Product, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """NumPy's matmul of strided matrices."""
    a, b, bias = (*inputs, None)[:3]
    left = _matrices(a, form.batch, form.rows, form.depth, form.a_strides)
    right = _matrices(b, form.batch, form.depth, form.columns, form.b_strides)
    result = _product(left, right, form.depth)
    if form.alpha != 1.0:
        result = result * result.dtype.type(form.alpha)
    if bias is not None:
        result = result + bias.astype(result.dtype) * result.dtype.type(form.beta)
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
