"""Shapes and numbers as tensors. A plan evaluates most; kernels make those that are as long as a size of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from perframe.backends.cpu.lowering.lowering import mover, strided_copy
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import is_less
from perframe.layers.shape import MadeNumbers
from perframe.tensor import DataType

LOWEST, HIGHEST = -1024, 1 << 16  # the numbers that kernels copy from a table


def _shape(layer: LayerLike, inputs: Sequence[Any], output: Operand) -> Any:
    return np.array(inputs[0].shape[slice(layer.start, layer.end)], np.int64)


def _size(layer: LayerLike, inputs: Sequence[Any], output: Operand) -> Any:
    return np.array(inputs[0].size, np.int64)


def _constant_of_shape(layer: LayerLike, inputs: Sequence[Any], output: Operand) -> Any:
    value = layer.value
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return np.full(tuple(inputs[0]), fill.reshape(-1)[0], fill.dtype)


def _range(layer: LayerLike, inputs: Sequence[Any], output: Operand) -> Any:
    start, _, delta = (value.item() for value in inputs)
    return (start + np.arange(output.shape[0]) * delta).astype(output.dtype.numpy)


_COMPUTE: dict[str, Callable[[LayerLike, Sequence[Any], Operand], Any]] = {
    "Shape": _shape,
    "Size": _size,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "SizeValues": lambda layer, inputs, output: inputs[0],
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute by operator."""
    return [_COMPUTE[layer.op](layer, inputs, outputs[0])]


def lower(
    layer: LayerLike, form: MadeNumbers, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Copies of one number to all elements, or of numbers from a table."""
    y = outputs[0]
    if form.value is not None and mover("move", y) is not None:
        value = np.array([form.value], y.dtype.numpy)
        return [strided_copy(layer, Operand.stored(value), y, (y.shape.size,), (0,), (1,))]
    runs: list[tuple[int, int, int]] = []  # (first, step, how many)
    if form.step is not None:
        runs.append((form.first, form.step, y.shape.size))
    for first, step, count in (*runs, *((number, 1, 1) for number in form.listed or ())):
        for end in (first, first + (count - 1) * step):
            if is_less(end, LOWEST) or not is_less(end, HIGHEST):
                return None
    table = _table(y.dtype)
    if form.listed is not None:
        return [
            strided_copy(layer, table, y, (1,), (1,), (1,), number - LOWEST, index)
            for index, number in enumerate(form.listed)
        ]
    return [
        strided_copy(layer, table, y, (count,), (step,), (1,), first - LOWEST) for first, step, count in runs
    ] or None


@cache
def _table(dtype: DataType) -> Operand:
    return Operand.stored(np.arange(LOWEST, HIGHEST, dtype=dtype.numpy))
