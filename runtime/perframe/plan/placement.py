"""Layers that run on the host although the backend has kernels for them, because their numbers lie there anyway."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.ir import Layer, Value
from perframe.plan.analysis import Analysis

FEW = 64  # floats that the host computes on the way to whole ones


def wide_layers_on_host(layers: Sequence[Layer], analysis: Analysis, inputs: Sequence[Value]) -> frozenset[Layer]:
    """The layers with wide numbers whose operands are on the host or cheap to compute there, and of the
    layers that compute those operands. Nothing waits for them.
    """
    if not any(layer.is_wide for layer in layers):
        return frozenset()

    def is_cheap(value: Value) -> bool:
        return not analysis.known[value].dtype.is_float or analysis.shape(value).size <= FEW

    able = {value for value in inputs if is_cheap(value)}

    def is_able(layer: Layer) -> bool:
        given = able.union(inputs) if layer.is_wide else able
        return all(value in given or analysis.known[value].is_known for value in layer.operands)

    for layer in layers:
        if is_able(layer) and all(map(is_cheap, layer.results)):
            able.update(layer.results)
    chosen, wanted = set[Layer](), set[Value]()
    for layer in reversed(layers):
        if (layer.is_wide or not wanted.isdisjoint(layer.results)) and is_able(layer):
            chosen.add(layer)
            wanted.update(layer.operands)
    return frozenset(chosen)
