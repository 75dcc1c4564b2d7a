"""Reversing sequences on GL."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import SMALL_DTYPES, Binding, Tools
from perframe.layers.reverse import Reversal
from perframe.tensor import DataType


def small_dtypes(layer: LayerLike) -> Sequence[DataType]:
    """All of them: they are only moved."""
    return SMALL_DTYPES


def lower(
    layer: LayerLike,
    form: Reversal,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    x, lengths = inputs[0], inputs[1]
    assert x is not None and lengths is not None
    params = {
        "times": form.times,
        "time_step": form.time_step,
        "batches": form.batches,
        "batch_step": form.batch_step,
    }
    return [Binding(layer.name, "reverse", {"X": x, "L": lengths}, outputs[0], params)]
