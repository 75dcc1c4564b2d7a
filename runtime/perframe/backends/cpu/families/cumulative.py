"""Running sums and products on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import CUMULATE
from perframe.backends.cpu.kernels.sizes import RUN
from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.cpu.lowering.lowering import sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.cumulative import Cumulation
from perframe.tensor import DataType

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


def lower(
    layer: LayerLike, form: Cumulation, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """One step for float32, float64, int32 and int64."""
    x = inputs[0]
    if x is None or x.dtype not in _DTYPES or not form.size or layer.epilogue:
        return None
    sign, start = ("+", 0) if form.combine == "sum" else ("*", 1)
    text = f"dtype, start = {x.dtype.value!r}, {start}\n@inline\ndef combine(a, b):\n    return a {sign} b\n"
    flags = {"is_exclusive": int(form.exclusive), "is_reverse": int(form.reverse)}
    numbers = CUMULATE.numbers(size=form.size, inner=form.inner, **flags)
    items = form.outer * -(-form.inner // RUN)
    operands, grain = CUMULATE.operands(x=x, out=outputs[0]), sharing(items, 2 * x.shape.size)
    return [step(layer, "cumulative", operands, numbers, items, text, grain=grain)]


_DTYPES = (DataType.FLOAT32, DataType.FLOAT64, DataType.INT32, DataType.INT64)
