"""Layers without shaders become layers that every backend supports."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.model import Evaluate, Layer, Model
from perframe.tensor import DataType


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of replaced layers."""
    spelled, layers = 0, list[Layer]()
    for layer in model.layers:
        if layer.op == "DynamicQuantizeLinear":
            layers += _own_range(model, layer)
            spelled += 1
        else:
            layers.append(layer)
    model.layers = layers
    return spelled


def _own_range(model: Model, layer: Layer) -> list[Layer]:
    """Return layers for the smallest and largest element, and the scale that spreads them over 8 bits.

    If all elements are zeros, the scale is 1/255.
    """
    made: list[Layer] = []
    names = model.names
    x, (y, scale, zero) = layer.inputs[0], [*layer.outputs, "", ""][:3]

    def then(op: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = f"{layer.name}/{len(made)}"
        made.append(Layer(op, name, list(inputs), [output or names.free(name)], attributes))
        return made[-1].outputs[0]

    def number(value: float) -> str:
        return model.add_constant(f"{value:g} of {layer.name}", np.array(value, np.float32))

    nothing, most = number(0), number(255)
    low = then("Min", then("ReduceMin", x, keepdims=0), nothing)
    high = then("Max", then("ReduceMax", x, keepdims=0), nothing)
    width = then("Sub", high, low)
    safe = then("Where", then("Equal", width, nothing), number(1), width)
    scale = then("Div", safe, most, output=scale)
    offset = then("Round", then("Clip", then("Neg", then("Div", low, scale)), nothing, most))
    zero = then("Cast", offset, output=zero, to=DataType.UINT8)
    then("QuantizeLinear", x, scale, zero, output=y)
    return made
