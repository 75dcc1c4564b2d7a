"""Gathering on GL."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import Binding, Tools
from perframe.layers.gather import Indexing


def lower(
    layer: LayerLike,
    form: Indexing,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    x, indices = inputs[0], inputs[1]
    assert x is not None and indices is not None
    params = {"size": form.size, "inner": form.inner, "count": form.count}
    return [Binding(layer.name, "gather", {"X": x, "I": indices}, outputs[0], params)]
