"""A branch with a constant condition is replaced by the body that runs."""

from __future__ import annotations

from dataclasses import replace

from perframe.model import Array, Evaluate, Layer, Model, Names


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of branches that were replaced."""
    layers, inlined, names = list[Layer](), 0, model.names
    for layer in model.layers:
        body_for = layer.declaration.body_for
        condition = model.constants.get(layer.inputs[0]) if body_for is not None else None
        if body_for is None or condition is None or condition.size != 1:
            layers.append(layer)
            continue
        body: Model = layer.attributes["bodies"][body_for(condition)]
        inside, constants = inlined_body(layer, body, names)
        layers += inside
        model.constants.update(constants)
        inlined += 1
    model.layers = layers
    return inlined


def inlined_body(layer: Layer, body: Model, names: Names) -> tuple[list[Layer], dict[str, Array]]:
    """The layers and constants of a body under free names. The last layers give its results the names that the branch's
    outputs have.
    """
    captures = layer.attributes.get("captures", ())
    new = dict(zip(captures, layer.inputs[len(layer.inputs) - len(captures) :], strict=True))
    for name in (*body.constants, *(name for inner in body.layers for name in inner.outputs if name)):
        new[name] = names.free(name)
    layers = [
        replace(
            inner,
            inputs=[new.get(name, name) for name in inner.inputs],
            outputs=[new.get(name, name) for name in inner.outputs],
        )
        for inner in body.layers
    ]
    for value, output in zip(body.outputs, layer.outputs, strict=False):
        if output:
            op = "Identity" if value.kind == "tensor" else "Pass"
            layers.append(Layer(op, f"{layer.name} gives {output}", [new.get(value.name, value.name)], [output]))
    return layers, {new[name]: value for name, value in body.constants.items()}
