"""Elements that are kept by their values, on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.lowering.casting import is_native
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike


def _non_zero(layer: LayerLike, x: Any) -> list[Any]:
    if not x.ndim:  # a scalar has no dims, so the result has no rows
        return [np.zeros((0, int(bool(x))), np.int64)]
    return [np.stack(np.nonzero(x)).astype(np.int64)]


def _compress(layer: LayerLike, x: Any, condition: Any) -> list[Any]:
    axis = layer.axis
    size = x.size if axis is None else x.shape[axis]
    return [np.compress(condition[:size], x, axis)]


def _filled(layer: LayerLike, x: Any) -> list[Any]:
    return [x[x[:, 0] != -1]]


def _unique(layer: LayerLike, x: Any) -> list[Any]:
    """The distinct rows along the axis, sorted or in the order in which they first occur."""
    axis = layer.axis
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    comparable = rows if is_native(rows.dtype) else rows.astype(np.float32)
    if axis is not None and rows.dtype == object:  # NumPy sorts rows of its own dtypes only
        comparable = rows.astype(str)
    _, first, inverse, counts = np.unique(comparable, True, True, True, axis=None if axis is None else 0)
    inverse = inverse.reshape(-1)
    if not layer.sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, counts, inverse = first[order], counts[order], rank[inverse]
    kept = rows[first]
    values = kept if axis is None else np.moveaxis(kept, 0, axis)
    return [values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)]


_COMPUTE: dict[str, Callable[..., list[Any]]] = {
    "NonZero": _non_zero,
    "Compress": _compress,
    "FilledRows": _filled,
    "Unique": _unique,
}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute by operator."""
    return _COMPUTE[layer.op](layer, *inputs)
