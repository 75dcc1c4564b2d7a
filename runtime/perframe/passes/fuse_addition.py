"""A sum of a convolution's result and another value of its shape: the convolution begins with that value."""

from __future__ import annotations

from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph
from perframe.tensor import DataType


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse; returns how many layers went."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        if layer.op != "Add" or len(set(layer.inputs)) != 2:
            continue
        for source, other in (layer.inputs[::-1], layer.inputs):
            conv = graph.producer_for(source, "conv")
            if conv is not None and _fits(graph, conv, layer, other):
                conv.inputs = [*[*conv.inputs, ""][:3], other]
                conv.epilogue = layer.epilogue
                graph.absorb(conv, layer)
                fused += 1
                break
    return fused


def _fits(graph: Graph, conv: Layer, layer: Layer, other: str) -> bool:
    """Whether the other value has the result's shape, and the convolution is no depthwise one."""
    shapes = {graph.specs[name].shape for name in (*layer.inputs, *layer.outputs)}
    weights = graph.specs[conv.inputs[1]].shape
    if len(shapes) != 1 or None in shapes or graph.specs[other].dtype is not DataType.FLOAT32 or weights is None:
        return False
    return conv.op == "Conv" and conv.channels_last and not conv.epilogue and not conv.inputs[3:] and weights[1] != 1
