"""Tensors whose elements follow from their positions, on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.make import Coding, Cosines, Diagonal, Triangle


def _eye(form: Diagonal, inputs: Sequence[Any], output: Operand) -> Any:
    return np.eye(form.rows, form.columns, form.offset, bool)


def _triangle(form: Triangle, inputs: Sequence[Any], output: Operand) -> Any:
    distance = np.arange(form.columns) - np.arange(form.rows)[:, None] - form.offset
    return np.where(distance >= 0 if form.upper else distance <= 0, inputs[0], np.zeros((), inputs[0].dtype))


def _one_hot(form: Coding, inputs: Sequence[Any], output: Operand) -> Any:
    indices = inputs[0].astype(np.int64).reshape(form.outer, 1, form.inner)
    indices = np.where(indices < 0, indices + form.depth, indices)
    off, on = inputs[2].reshape(-1)
    chosen = np.full((form.outer, form.depth, form.inner), off, inputs[2].dtype)
    chosen[indices == np.arange(form.depth).reshape(1, -1, 1)] = on
    return chosen


def _cosines(form: Cosines, inputs: Sequence[Any], output: Operand) -> Any:
    """A sum of cosines with alternating signs. A periodic one leaves out its last element, which equals the first."""
    count = output.shape[0]
    turns = max(count if form.periodic else count - 1, 1)
    at = np.arange(count) * (2 * np.pi / turns)
    return sum((-1) ** index * factor * np.cos(index * at) for index, factor in enumerate(form.factors))


_COMPUTE: dict[type, Callable[[Any, Sequence[Any], Operand], Any]] = {
    Diagonal: _eye,
    Triangle: _triangle,
    Coding: _one_hot,
    Cosines: _cosines,
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute by form."""
    return [np.asarray(_COMPUTE[type(form)](form, inputs, outputs[0])).astype(outputs[0].dtype.numpy)]
