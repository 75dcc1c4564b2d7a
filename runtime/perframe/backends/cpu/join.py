"""Concatenation on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu.lowering import mover, strided_copy
from perframe.backends.cpu.program import NativeStep
from perframe.layers.join import Joining


def compute(layer: LayerLike, form: Joining, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Joined row by row."""
    rows = [array.reshape(form.outer, run) for array, run in zip(inputs, form.runs, strict=True)]
    return [np.concatenate(rows, 1)]


def lower(
    layer: LayerLike, form: Joining, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """A copy for each input that has elements."""
    given = [value for value in inputs if value is not None]
    if mover("move", *given) is None:
        return None
    steps, first, total = [], 0, sum(form.runs)
    for value, run in zip(given, form.runs, strict=True):
        if run:
            shape = (form.outer, run)
            steps.append(strided_copy(layer, value, outputs[0], shape, (run, 1), (total, 1), out_offset=first))
        first += run
    return steps
