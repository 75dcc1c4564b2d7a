"""MadeNumbers as tensors, on GL. A plan evaluates most; kernels make those that are as long as a size of a trace."""

from __future__ import annotations

import numpy as np

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.layers.shape import MadeNumbers
from perframe.tensor import DataType

DTYPES = ALL_DTYPES


def supports(call: Call[MadeNumbers]) -> str | None:
    """Supports all but ranges of other numbers than ints."""
    form = call.form
    made = isinstance(form, MadeNumbers) and (form.value, form.step, form.listed) != (None, None, None)
    return None if made else f"{call.layer.op} has no GL kernel"


def lower(call: Call[MadeNumbers], tools: Tools) -> list[Binding]:
    """One kernel."""
    form = call.form
    if form.value is not None:
        held = np.float32 if call.y.dtype is DataType.FLOAT32 else np.int32
        return [call.copy(tools.constant(np.array([form.value], held)), call.y, step=0)]
    if form.listed is not None:
        return [call.bind("sizes", {}, call.y, {"numbers": form.listed})]
    return [call.bind("range", {}, call.y, {"begin": form.first})]
