"""Elements dropped at random, on GL."""

from __future__ import annotations

import numpy as np

from perframe.backends.gl.families import random
from perframe.backends.gl.lowering.steps import Array, Binding, Call, Tools
from perframe.backends.operand import Operand
from perframe.layers.drop import Dropping
from perframe.layers.random import Drawing
from perframe.tensor import DataType


def supports(call: Call[Dropping]) -> str | None:
    """Supports float32, and every dtype if the layer drops nothing."""
    drops = not call.form.rests and call.x.dtype is not DataType.FLOAT32
    return f"dropping elements of {call.x.dtype} has no GL kernel" if drops else None


def lower(call: Call[Dropping], tools: Tools) -> list[Binding]:
    """One kernel for each output. Random numbers are drawn in each run, or once if there is a seed."""
    if call.form.rests:
        return [_filled(call, tools, y) if mask else call.copy(call.x, y) for mask, y in enumerate(call.outputs)]
    drawn, bindings = _drawn(call, tools)
    half, rests = np.full(1, 0.5, np.float32), np.zeros(1, np.int32)
    given = {
        "X": call.x,
        "U": drawn,
        "R": call.optional(1) or tools.constant(half),
        "T": call.optional(2) or tools.constant(rests),
    }
    for y, mask in zip(call.outputs, ("0", "1"), strict=False):
        bindings.append(call.bind("drop", given, y, defines={"MASK": mask}))
    return bindings


def _filled(call: Call[Dropping], tools: Tools, mask: Operand) -> Binding:
    return call.copy(tools.constant(np.ones(1, np.int32)), mask, step=0)


def _drawn(call: Call[Dropping], tools: Tools) -> tuple[Operand, list[Binding]]:
    form, shape = call.form, call.x.shape
    if form.seed is not None:
        return tools.constant(_not_above(form.drawn(shape))), []
    units = tools.scratch(shape, DataType.FLOAT32)
    return units, random.drawn(call, Drawing("uniform", None), units, tools)


def _not_above(values: Array) -> Array:
    """Round down to float32. Comparisons with float32 numbers stay exact: the result is below one if the value is."""
    rounded = values.astype(np.float32)
    below: Array = np.where(rounded > values, np.nextafter(rounded, np.float32(-1)), rounded)
    return below
