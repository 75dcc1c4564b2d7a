"""A quantization that is only dequantized again becomes a formula that rounds floats.

The layer before it can then round its own results, and no bytes are stored.
"""

from __future__ import annotations

from perframe.layers.quantize import WHOLE_RANGES
from perframe.model import Evaluate, Layer, Model
from perframe.passes.quantization import quantization


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite, and return the number of dequantizations that became formulas."""
    changed = 0
    for layer in model.walk():
        made = _formula(layer) if layer.op == "DequantizeLinear" and not layer.epilogue else None
        if made is not None:
            model.replace(layer, made)
            changed += 1
    return changed


def _formula(layer: Layer) -> Layer | None:
    """The formula for a dequantization of what a QuantizeLinear makes; None for any other."""
    before = layer.x.producer
    if before is None or before.op != "QuantizeLinear" or before.on_host or layer.on_host:
        return None
    there, back = quantization(before), quantization(layer)
    if there is None or back is None:
        return None
    low, high = WHOLE_RANGES[layer.x.spec.dtype]
    numbers = {
        "scale": float(there.scale),
        "zero": float(there.zero),
        "low": float(low),
        "high": float(high),
        "to_scale": float(back.scale),
        "to_zero": float(back.zero),
    }
    return Layer("FakeQuantize", layer.name, [before.input(0)], layer.outputs, numbers)
