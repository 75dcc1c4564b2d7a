"""Products give up activations that bytes can look up."""

from __future__ import annotations

import numpy as np

from perframe.ir import Layer, Model, Value
from perframe.quantization.choosing import Choice


def split_activations(model: Model, choice: Choice) -> int:
    """Make layers of the activations after products whose result becomes bytes, in place. Returns their number.

    An 8-bit product can clip its results. Any other formula would need them as floats, and a table of 256 bytes is
    faster. Other runtimes multiply bytes only if nothing but a clip follows before the quantization.
    """
    products, values, split = set(choice.products), set(choice.values), 0
    for layer in model.layers:
        at = next((index for index, stage in enumerate(layer.epilogue) if stage.limits is None), None)
        if at is None or layer not in products or layer.output not in values or layer.output.is_output:
            continue
        value, *numbers = layer.epilogue[at].operands
        if value is not None or not all(isinstance(number, float | int) for number in numbers):
            continue
        stage, rest, output = layer.epilogue[at], layer.epilogue[at + 1 :], layer.output
        before = Value(f"{output.name}/before")
        constants = [model.add_constant(f"{output.name}/number", np.array(number, np.float32)) for number in numbers]
        layer.outputs, layer.epilogue = [before], layer.epilogue[:at]
        title, attributes = f"{layer.name}/{stage.op}", dict(stage.attributes)
        model.insert(Layer(stage.op, title, [before, *constants], [output], attributes, rest), after=layer)
        split += 1
    return split
