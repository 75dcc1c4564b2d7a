"""A constant added to the result of a convolution or product becomes its bias."""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.passes.match import Graph, channel_vector

FAMILIES = ("conv", "conv_transpose", "matmul")


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        if layer.op != "Add" or layer.epilogue:
            continue
        for source, other in (layer.inputs, layer.inputs[::-1]):
            target = graph.producers.get(source)
            if target is None or target.family not in FAMILIES or target.epilogue or graph.constant(other) is None:
                continue
            if target.outputs[0] != source or graph.only_user(source) is None:
                refuse(layer, f"other layers read the result of {target.name!r} too")
            elif _fuse(graph, target, layer, other):
                fused += 1
                break
    return fused


def _is_fixed(graph: Graph, name: str) -> bool:
    """Whether a value is a constant, or made of constants: of weights that take fewer bits."""
    made = graph.producers.get(name)
    return name in graph.model.constants or (
        made is not None and all(source in graph.model.constants for source in made.inputs if source)
    )


def _fuse(graph: Graph, target: Layer, layer: Layer, other: str) -> bool:
    weights, addend = graph.specs[target.inputs[1]], graph.constant(other)
    if not _is_fixed(graph, target.inputs[1]) or addend is None or target.op == "Gemm":
        return False
    made, result = graph.specs[target.outputs[0]], graph.specs[layer.outputs[0]]
    if not made.shape or result.shape is None or len(made.shape) != len(result.shape):
        return False
    axis = len(made.shape) - 1 if target.family == "matmul" or target.channels_last else 1
    channels = made.shape[axis]
    if not isinstance(channels, int) or made.shape != result.shape:
        return False
    vector = channel_vector(addend, channels, len(made.shape), axis)
    if vector is None or (target.family == "matmul" and len(weights.shape or ()) < 2):
        refuse(layer, f"its constant of shape {addend.shape} is not a number for each of {channels} channels")
        return False
    if len(target.inputs) > 2 and target.inputs[2]:
        old = graph.constant(target.inputs[2])
        if old is None:
            return False
        with np.errstate(over="ignore"):
            vector = (old + vector).astype(np.float32)
        if not np.isfinite(vector).all():
            return False
    target.inputs = [*target.inputs[:2], graph.model.add_constant(f"{target.name}+{layer.name}", vector)]
    graph.absorb(target, layer)
    return True
