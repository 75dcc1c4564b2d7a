"""Layers whose 64-bit integers may not fit 32 bits run on the CPU: GPU integers are int32.

Indices stay on the GPU. Those that do not fit are outside of any tensor, and are an error anyway.
"""

from __future__ import annotations

from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph
from perframe.passes.ranges import HELD, INT32, Range, ranges

INDICES = {"Gather": 1, "GatherElements": 1, "GatherND": 1, "ScatterElements": 1, "ScatterND": 1}


def run(model: Model, evaluate: Evaluate) -> int:
    """Mark the layers, and return their number."""
    if not _makes_wide(model):
        return 0
    graph, marked = Graph(model), 0
    found = ranges(graph)
    for layer in model.layers:
        if layer.on_host or layer.is_wide or layer.declaration.alias or layer.declaration.on_host:
            continue
        read = [n for i, n in enumerate(layer.inputs) if n and i != INDICES.get(layer.op) and _reads(layer, i)]
        wide = any(not _is_held(graph, name, found) for name in (*read, *(name for name in layer.outputs if name)))
        if wide or (layer.op == "ReduceMean" and _sums_beyond(graph, layer, found)):
            layer.is_wide = True
            marked += 1
    return marked


def _makes_wide(model: Model) -> bool:
    """Whether a layer may make numbers of 64 bits; most models have none, and then nothing is inferred."""
    means = [layer.outputs[0] for layer in model.layers if layer.op == "ReduceMean"]
    specs = model.infer()
    return any(spec.dtype in HELD for spec in specs.values()) or any(not specs[name].dtype.is_float for name in means)


def _sums_beyond(graph: Graph, layer: Layer, found: dict[str, Range]) -> bool:
    """Whether the sum for a mean of integers may leave int32."""
    low, high = found[layer.outputs[0]]
    return not graph.specs[layer.outputs[0]].dtype.is_float and not (INT32[0] <= low and high <= INT32[1])


def _reads(layer: Layer, index: int) -> bool:
    return layer.declaration.reads_values and not layer.declaration.is_host(index)


def _is_held(graph: Graph, name: str, found: dict[str, Range]) -> bool:
    spec = graph.specs[name]
    held = HELD.get(spec.dtype) if spec.kind == "tensor" else None
    if held is None or spec.value is not None:  # the backend looks at constants itself
        return True
    low, high = found[name]
    return held[0] <= low and high <= held[1]
