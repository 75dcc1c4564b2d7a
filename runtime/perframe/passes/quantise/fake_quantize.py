"""A quantization that is only dequantized again becomes a formula that rounds floats.

The layer before it can then round its own results, and no bytes are stored.
"""

from __future__ import annotations

from perframe.ir import Layer, Model, Value
from perframe.layers.quantize import WHOLE_RANGES
from perframe.passes.patterns import AnyValue, Op, Rules
from perframe.passes.quantise.quantization import quantization

run = Rules()


@run.rule(Op("DequantizeLinear", Op("QuantizeLinear", AnyValue("x"), name="before", shared=True)))
def _round(model: Model, root: Layer, before: Layer, x: Value) -> int:
    there, back = quantization(before), quantization(root)
    if there is None or back is None:
        return 0
    low, high = WHOLE_RANGES[root.x.spec.dtype]
    numbers = {
        "scale": float(there.scale),
        "zero": float(there.zero),
        "low": float(low),
        "high": float(high),
        "to_scale": float(back.scale),
        "to_zero": float(back.zero),
    }
    model.replace(root, Layer("FakeQuantize", root.name, [x], root.outputs, numbers))
    return 1
