"""Rotary embeddings on GL."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.layers.rotary import PairRotation
from perframe.tensor import DataType

DTYPES = (DataType.FLOAT32,)


def dims(form: PairRotation) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [form.shape]


def lower(call: Call[PairRotation], tools: Tools) -> list[Binding]:
    """One kernel for all kinds of pairs and tables."""
    given = {"X": call.x, "C": call.input(1), "S": call.input(2)}
    return [call.bind("rotary", given, call.y, {"rank": len(call.form.shape)})]
