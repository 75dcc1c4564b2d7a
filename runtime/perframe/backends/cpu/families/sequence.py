"""Sequences and optionals. A sequence is a Python list, and an empty optional is None."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.protocol import LayerLike
from perframe.errors import InputError


def _at(layer: LayerLike, position: Any, length: int, extra: int = 0) -> int:
    index = int(np.asarray(position).reshape(-1)[0])
    if not -length <= index < length + extra:
        raise InputError(f"layer {layer.name!r} ({layer.op}): position {index} is outside a sequence of {length}")
    return index + length if index < 0 else index


def _insert(layer: LayerLike, sequence: list[Any], tensor: Any, position: Any = None) -> Any:
    at = len(sequence) if position is None else _at(layer, position, len(sequence), 1)
    return [*sequence[:at], tensor, *sequence[at:]]


def _erase(layer: LayerLike, sequence: list[Any], position: Any = None) -> Any:
    at = len(sequence) - 1 if position is None else _at(layer, position, len(sequence))
    return [*sequence[:at], *sequence[at + 1 :]]


def _concat(layer: LayerLike, sequence: list[Any]) -> Any:
    axis = layer.axis
    return (np.stack if layer.new_axis else np.concatenate)(sequence, axis)


def _split(layer: LayerLike, x: Any, split: Any = None) -> Any:
    axis = layer.axis % x.ndim
    if split is None:
        parts = np.split(x, x.shape[axis], axis) if x.shape[axis] else []
        return parts if layer.keepdims else [part.squeeze(axis) for part in parts]
    each = np.arange(int(split), x.shape[axis], int(split)) if np.ndim(split) == 0 else np.cumsum(split)[:-1]
    return np.split(x, each, axis)


def _get(layer: LayerLike, x: Any) -> Any:
    if x is None:
        raise InputError(f"layer {layer.name!r}: the optional is empty")
    return x


_COMPUTE: dict[str, Callable[..., Any]] = {
    "SequenceConstruct": lambda layer, *inputs: list(inputs),
    "SequenceEmpty": lambda layer: [],
    "SequenceAt": lambda layer, sequence, position: sequence[_at(layer, position, len(sequence))],
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceLength": lambda layer, sequence: np.array(len(sequence), np.int64),
    "ConcatFromSequence": _concat,
    "SplitToSequence": _split,
    "Optional": lambda layer, x=None: x,
    "OptionalHasElement": lambda layer, x=None: np.array(x is not None),
    "OptionalGetElement": _get,
    "Pass": lambda layer, x: x,
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Any) -> list[Any]:
    """Compute by operator. Every operator has one output."""
    return [_COMPUTE[layer.op](layer, *inputs)]
