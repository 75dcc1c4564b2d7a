"""Running sums and products on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.cumulative import Cumulation

_COMBINE: dict[str, tuple[Any, int]] = {"sum": (np.cumsum, 0), "product": (np.cumprod, 1)}


def compute(layer: LayerLike, form: Cumulation, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Use NumPy's cumulative functions. For a reverse one, flip the axis; for an exclusive one, put a neutral element
    first and drop the last.
    """
    x = inputs[0].reshape(form.outer, form.size, form.inner)
    combine, start = _COMBINE[form.combine]
    x = x.astype(accumulator(x.dtype), copy=False)
    x = x[:, ::-1] if form.reverse else x
    if form.exclusive:
        first = np.full((form.outer, min(form.size, 1), form.inner), start, x.dtype)
        x = np.concatenate([first, x[:, :-1]], 1)
    total = combine(x, axis=1, dtype=x.dtype)
    return [(total[:, ::-1] if form.reverse else total).astype(inputs[0].dtype)]
