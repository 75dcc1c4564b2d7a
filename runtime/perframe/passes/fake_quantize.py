"""A quantization that is only dequantized again becomes a formula that rounds floats.

The layer before it can then round its own results, and no bytes are stored.
"""

from __future__ import annotations

from perframe.layers.quantize import WHOLE_RANGES
from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph
from perframe.passes.quantization import quantization


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite, and return the number of dequantizations that became formulas."""
    graph, changed = Graph(model), 0
    for index, layer in enumerate(model.layers):
        made = _formula(graph, layer) if layer.op == "DequantizeLinear" and not layer.epilogue else None
        if made is not None:
            model.layers[index] = made
            changed += 1
    return changed


def _formula(graph: Graph, layer: Layer) -> Layer | None:
    """The formula for a dequantization of what a QuantizeLinear makes; None for any other."""
    before = graph.producers.get(layer.inputs[0])
    if before is None or before.op != "QuantizeLinear" or before.on_host or layer.on_host:
        return None
    there, back = quantization(graph, before), quantization(graph, layer)
    if there is None or back is None:
        return None
    low, high = WHOLE_RANGES[graph.specs[layer.inputs[0]].dtype]
    numbers = {
        "scale": float(there.scale),
        "zero": float(there.zero),
        "low": float(low),
        "high": float(high),
        "to_scale": float(back.scale),
        "to_zero": float(back.zero),
    }
    return Layer("FakeQuantize", layer.name, [before.inputs[0]], list(layer.outputs), numbers)
