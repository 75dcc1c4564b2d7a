"""Layers whose 64-bit integers may not fit 32 bits run on the CPU: GPU integers are int32.

Indices stay on the GPU. Those that do not fit are outside of any tensor, and are an error anyway.
"""

from __future__ import annotations

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.passes.place.ranges import HELD, INT32, Ranges

INDICES = {"Gather": 1, "GatherElements": 1, "GatherND": 1, "ScatterElements": 1, "ScatterND": 1}


def run(model: Model, evaluate: Evaluate) -> int:
    """Mark the layers, and return their number."""
    model.infer()
    if not _makes_wide(model):
        return 0
    marked = 0
    found = Ranges()
    for layer in model.walk():
        if layer.on_host or layer.is_wide or layer.declaration.alias or layer.declaration.on_host:
            continue
        read = [v for i, v in enumerate(layer.inputs) if v and i != INDICES.get(layer.op) and _reads(layer, i)]
        wide = any(not _is_held(value, found) for value in (*read, *layer.results))
        if wide or (layer.op == "ReduceMean" and _sums_beyond(layer, found)):
            layer.is_wide = True
            marked += 1
    return marked


def _makes_wide(model: Model) -> bool:
    """Whether a layer may make numbers of 64 bits; most models have none, and then nothing is inferred."""
    made = [value for layer in model.layers for value in (*layer.operands, *layer.results)]
    means = [layer.output for layer in model.layers if layer.op == "ReduceMean"]
    return any(value.spec.dtype in HELD for value in made) or any(not value.spec.dtype.is_float for value in means)


def _sums_beyond(layer: Layer, found: Ranges) -> bool:
    """Whether the sum for a mean of integers may leave int32."""
    low, high = found[layer.output]
    return not layer.output.spec.dtype.is_float and not (INT32[0] <= low and high <= INT32[1])


def _reads(layer: Layer, index: int) -> bool:
    return layer.declaration.reads_values and not layer.declaration.is_host(index)


def _is_held(value: Value, found: Ranges) -> bool:
    spec = value.spec
    held = HELD.get(spec.dtype) if spec.kind == "tensor" else None
    if held is None or spec.value is not None:  # the backend looks at constants itself
        return True
    low, high = found[value]
    return held[0] <= low and high <= held[1]
