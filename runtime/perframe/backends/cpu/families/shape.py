"""Shapes and numbers as tensors. A plan evaluates these; they need no kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike


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
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute by operator."""
    return [_COMPUTE[layer.op](layer, inputs, outputs[0])]
