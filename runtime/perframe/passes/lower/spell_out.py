"""Layers without shaders become layers that every backend supports."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.ir import Layer, Model, Value
from perframe.passes.patterns import Op, Rules
from perframe.tensor import DataType

run = Rules()


@run.rule(Op("DynamicQuantizeLinear", epilogue=True))
def _spell(model: Model, root: Layer) -> int:
    model.replace(root, *_own_range(model, root))
    return 1


def _own_range(model: Model, layer: Layer) -> list[Layer]:
    """Return layers for the smallest and largest element, and the scale that spreads them over 8 bits.

    If all elements are zeros, the scale is 1/255.
    """
    made: list[Layer] = []
    x, (y, scale, zero) = layer.input(0), [*layer.outputs, None, None][:3]

    def then(op: str, *inputs: Value, output: Value | None = None, **attributes: Any) -> Value:
        name = f"{layer.name}/{len(made)}"
        made.append(Layer(op, name, inputs, [output or Value(name)], attributes))
        return made[-1].output

    def number(value: float) -> Value:
        return model.add_constant(f"{value:g} of {layer.name}", np.array(value, np.float32))

    nothing, most = number(0), number(255)
    low = then("Min", then("ReduceMin", x, keepdims=0), nothing)
    high = then("Max", then("ReduceMax", x, keepdims=0), nothing)
    width = then("Sub", high, low)
    safe = then("Where", then("Equal", width, nothing), number(1), width)
    step = then("Div", safe, most, output=scale)
    offset = then("Round", then("Clip", then("Neg", then("Div", low, step)), nothing, most))
    origin = then("Cast", offset, output=zero, to=DataType.UINT8)
    then("QuantizeLinear", x, step, origin, output=y)
    return made
