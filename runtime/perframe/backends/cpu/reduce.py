"""Reductions on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.lowering import all_float32, step
from perframe.backends.cpu.program import NativeStep
from perframe.layers.formula import translate
from perframe.layers.reduce import Reduction

_COMBINE: dict[str, Any] = {"sum": np.add, "product": np.multiply, "largest": np.maximum, "smallest": np.minimum}
_EMPTY = {"sum": 0, "product": 1, "largest": -math.inf, "smallest": math.inf}


def compute(layer: LayerLike, form: Reduction, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """NumPy's own reduction between the two formulas."""
    x = inputs[0]
    if not form.axes and x.ndim:
        return [form.finish(form.prepare(x), x.dtype.type(1))]
    prepared = form.prepare(x)
    combine = _COMBINE[form.combine]
    if x.size == 0:
        start = _EMPTY[form.combine]
        if math.isinf(start) and x.dtype.kind not in "fc":
            info = np.iinfo(x.dtype)
            start = info.min if start < 0 else info.max
        shape = [1 if axis in form.axes else dim for axis, dim in enumerate(x.shape)]
        total = np.full(shape, start, x.dtype)
    else:
        total = combine.reduce(
            prepared, axis=form.axes, keepdims=True, dtype=None if combine in (np.maximum, np.minimum) else x.dtype
        )
    return [form.finish(total, np.asarray(form.count).astype(x.dtype))]


def lower(
    layer: LayerLike, form: Reduction, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """float32 reductions of something."""
    x = inputs[0]
    if x is None or not all_float32([x, outputs[0]]) or not x.shape.size:
        return None
    prepare, _ = translate(form.prepare, ["float"], "python")
    finish, _ = translate(form.finish, ["float", "float"], "python")
    text = (
        f"{prepare}\n@inline\ndef formula(x):\n    return {form.prepare.__name__}(x)\n"
        f"{finish}\n@inline\ndef epilogue(x, count):\n    return {form.finish.__name__}(x, count)\n"
    )
    numbers = [len(form.kept), *form.kept, *form.kept_strides, len(form.reduced), *form.reduced, *form.reduced_strides]
    return [step(layer, f"reduce.{form.combine}", [x, outputs[0]], numbers, math.prod(form.kept), text)]
