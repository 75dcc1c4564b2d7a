"""Concatenation on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.lowering.lowering import mover, strided_copy
from perframe.backends.cpu.lowering.rows import walk
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.join import Joining


def compute(layer: LayerLike, form: Joining, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Join row by row."""
    rows = [array.reshape(form.outer, run) for array, run in zip(inputs, form.runs, strict=True)]
    return [np.concatenate(rows, 1)]


def lower(
    layer: LayerLike, form: Joining, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """A copy for each input that has elements and does not lie within the output already."""
    given, out = [value for value in inputs if value is not None], outputs[0]
    if mover("move", *given) is None:
        return None
    steps, first, total = [], 0, sum(form.runs)
    for value, run in zip(given, form.runs, strict=True):
        if run and not value.lies_in(out, first):
            own = value.shape[-1] if value.shape else 1
            shape = (form.outer, run // own, own)
            read, written = walk(value, (run, own, 1), shape), walk(out, (total, own, 1), shape, first)
            assert read is not None and written is not None
            steps.append(strided_copy(layer, value, out, shape, read[0], written[0], out_offset=written[1]))
        first += run
    return steps


def takes_gaps(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> list[Operand]:
    """All inputs and outputs: copies can walk over gaps."""
    return [value for value in (*inputs, *outputs) if value is not None]
