"""A branch with a constant condition is replaced by the body that runs."""

from __future__ import annotations

from perframe.ir import Evaluate, Layer, Model, Value


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of branches that were replaced."""
    inlined = 0
    for layer in model.walk():
        body_for = layer.declaration.body_for
        condition = layer.input(0).constant if body_for is not None else None
        if body_for is not None and condition is not None and condition.size == 1:
            model.replace(layer, *inlined_body(layer, layer.inner_models[body_for(condition)]))
            inlined += 1
    return inlined


def inlined_body(layer: Layer, body: Model) -> list[Layer]:
    """Return copies of a body's layers that read the branch's captured values. The last ones make its outputs."""
    captures = layer.captures
    around = dict(zip(captures, layer.inputs[len(layer.inputs) - len(captures) :], strict=True))
    values: dict[Value, Value] = {}
    for value in body.inputs:
        captured = around[value.name]
        assert captured is not None
        values[value] = captured
    for inner in body.layers:
        for value in (*inner.operands, *inner.results):
            values.setdefault(value, Value(value.name, constant=value.constant))
    layers = [inner.copy(values) for inner in body.layers]
    for value, output in zip(body.outputs, layer.outputs, strict=False):
        if output is not None:
            op = "Identity" if value.kind == "tensor" else "Pass"
            source = values.get(value) or Value(value.name, constant=value.constant)
            layers.append(Layer(op, f"{layer.name} gives {output.name}", [source], [output]))
    return layers
