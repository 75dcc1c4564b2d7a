"""Products give up activations that bytes can look up."""

from __future__ import annotations

import numpy as np

from perframe.model import Layer, Model
from perframe.quantization.choosing import Choice


def split_activations(model: Model, choice: Choice) -> int:
    """Make layers of the activations after products whose result becomes bytes, in place. Returns their number.

    An 8-bit product can clip its results. Any other formula would need them as floats, and a table of 256 bytes is
    faster. Other runtimes multiply bytes only if nothing but a clip follows before the quantization.
    """
    ids, values, kept = {id(layer) for layer in choice.products}, {*choice.values}, {*model.output_names}
    names, layers = model.names, list[Layer]()
    for layer in model.layers:
        layers.append(layer)
        output = layer.outputs[0] if layer.outputs else ""
        at = next((index for index, stage in enumerate(layer.epilogue) if stage.limits is None), None)
        if at is None or id(layer) not in ids or output not in values or output in kept:
            continue
        value, *numbers = layer.epilogue[at].operands
        if value is not None or not all(isinstance(number, float | int) for number in numbers):
            continue
        stage, rest, before = layer.epilogue[at], layer.epilogue[at + 1 :], names.free(f"{output}/before")
        constants = [model.add_constant(f"{output}/number", np.array(number, np.float32)) for number in numbers]
        layer.outputs, layer.epilogue = [before], layer.epilogue[:at]
        title, attributes = f"{layer.name}/{stage.op}", dict(stage.attributes)
        layers.append(Layer(stage.op, title, [before, *constants], [output], attributes, rest))
    made = len(layers) - len(model.layers)
    model.layers = layers
    return made
