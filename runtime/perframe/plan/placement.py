"""Layers that run on the host although the backend has kernels for them, because their numbers lie there anyway."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.model import Layer
from perframe.plan.inferred import Outline

FEW = 64  # floats that the host computes on the way to whole ones


def wide_layers_on_host(layers: Sequence[Layer], outline: Outline, inputs: Sequence[str]) -> frozenset[int]:
    """The ids of the layers with wide numbers whose operands are on the host or cheap to compute there, and of the
    layers that compute those operands. Nothing waits for them.
    """
    if not any(layer.is_wide for layer in layers):
        return frozenset()

    def is_cheap(name: str) -> bool:
        return not outline.known[name].dtype.is_float or outline.shape(name).size <= FEW

    able = {name for name in inputs if is_cheap(name)}

    def is_able(layer: Layer) -> bool:
        given = able.union(inputs) if layer.is_wide else able
        return all(name in given or outline.known[name].is_known for name in layer.inputs if name)

    for layer in layers:
        if is_able(layer) and all(is_cheap(name) for name in layer.outputs if name):
            able.update(layer.outputs)
    chosen, wanted = set[int](), set[str]()
    for layer in reversed(layers):
        if (layer.is_wide or not wanted.isdisjoint(layer.outputs)) and is_able(layer):
            chosen.add(id(layer))
            wanted.update(layer.inputs)
    return frozenset(chosen)
