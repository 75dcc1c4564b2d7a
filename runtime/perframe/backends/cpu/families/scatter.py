"""Scattering on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.families.gather import addresses, wrapped
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.geometry import row_major
from perframe.layers.scatter import Rows, Scattering

_REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Write the updates into a copy of the data."""
    return [_COMPUTE[type(form)](form, inputs)]


def _scatter(form: Scattering, inputs: Sequence[Any]) -> Any:
    """Apply the updates in their order. Reductions of float16 compute in float32."""
    x, indices, updates = inputs
    at = wrapped(indices, form.shape[form.axis]) if form.by is None else addresses(form.by, indices)
    spread = np.lib.stride_tricks.as_strided(
        np.ascontiguousarray(at), form.extent, tuple(step * 8 for step in form.steps)
    )
    strides = row_major(form.shape)
    targets = spread * strides[form.axis]
    for axis, (dim, stride) in enumerate(zip(form.extent, strides, strict=True)):
        if axis != form.axis:
            targets = targets + np.arange(dim).reshape(-1, *(1,) * (len(form.extent) - axis - 1)) * stride
    targets, updates = targets.reshape(-1), updates.reshape(-1)
    if form.reduction == "none":
        result = x.reshape(-1).copy()
        result[targets] = updates
        return result
    narrow = x.dtype.kind not in "biufc" or x.dtype == np.float16
    wide = np.dtype(np.float32) if narrow else x.dtype
    result = x.reshape(-1).astype(wide)
    _REDUCTIONS[form.reduction].at(result, targets, updates.astype(wide))
    return result.astype(x.dtype)


def _rows(form: Rows, inputs: Sequence[Any]) -> Any:
    x, update, begin = (*inputs, None)[:3]
    result = x.reshape(form.batch, form.outer, form.size, form.inner).copy()
    first = np.zeros(form.batch, np.int64) if begin is None else begin.reshape(-1)
    at = first[:, None] + np.arange(form.count)
    at = at % max(form.size, 1)
    for batch, rows in enumerate(update.reshape(form.batch, form.outer, form.count, form.inner)):
        result[batch][:, at[batch]] = rows
    return result


_COMPUTE: dict[type, Callable[[Any, Sequence[Any]], Any]] = {Scattering: _scatter, Rows: _rows}
