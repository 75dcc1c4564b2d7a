"""A number that multiplies an operand of a product moves to its constant operand, or else to its result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perframe.layers.epilogue import Stage
from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.passes.fuse_activation import extended
from perframe.passes.match import Graph, may_fold, may_move, scalar


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        if layer.op == "MatMul":
            for index in (0, 1):
                fused += _fuse(graph, layer, index)
    return fused


def _fuse(graph: Graph, layer: Layer, index: int) -> bool:
    scaling = graph.producers.get(layer.inputs[index])
    if scaling is None or scaling.op not in ("Mul", "Div") or scaling.epilogue or len(scaling.inputs) != 2:
        return False
    found = _scaled(graph, scaling)
    if found is None or not graph.all_float32(layer, scaling):
        return False
    source, factor = found
    if graph.only_user(scaling.outputs[0]) is not layer or layer.inputs.count(scaling.outputs[0]) > 1:
        refuse(scaling, "other layers read the scaled value too")
        return False
    other = graph.constant(layer.inputs[1 - index])
    if other is not None and len(graph.users[layer.inputs[1 - index]]) > 1:
        refuse(scaling, f"other layers read the constant {layer.inputs[1 - index]!r} too")
        return False
    if not (may_move(factor) if other is None else may_fold(other, factor)):
        refuse(scaling, f"the factor {factor:g} may keep the product within float32's range")
        return False
    if other is not None:
        scaled = (other.astype(np.float64) * factor).astype(np.float32)
        layer.inputs[1 - index] = graph.model.add_constant(f"{layer.inputs[1 - index]}*{factor:g}", scaled)
    elif len(layer.inputs) > 2:
        refuse(scaling, "the product has a bias, which is not scaled")
        return False
    else:
        epilogue = extended(replace(layer, epilogue=()), *_with_factor(layer, factor))
        if epilogue is None:
            refuse(scaling, "the product's epilogue is full")
            return False
        layer.epilogue = epilogue
    layer.inputs[index] = source
    graph.remove(scaling)
    graph.relink()
    if other is not None:
        graph.learn(layer)
    return True


def _scaled(graph: Graph, layer: Layer) -> tuple[str, float] | None:
    """The value that a layer multiplies by a number, and the number; None for any other layer."""
    for source, other in (layer.inputs, layer.inputs[::-1]):
        number = scalar(graph.constant(other))
        if number is None or graph.specs[source].shape != graph.specs[layer.outputs[0]].shape:
            continue
        if layer.op == "Mul":
            return source, number
        if layer.op == "Div" and other == layer.inputs[1] and number:
            return source, 1 / number
    return None


def _with_factor(layer: Layer, factor: float) -> tuple[Stage, ...]:
    """The product's epilogue after a factor; a factor that is there already is multiplied."""
    stages = layer.epilogue
    first = stages[0].operands[1] if stages and stages[0].op == "Mul" and stages[0].operands[0] is None else None
    if isinstance(first, float) and may_fold(first, factor):
        return (Stage("Mul", (), (None, float(np.float32(first * factor)))), *stages[1:])
    return (Stage("Mul", (), (None, float(np.float32(factor)))), *stages)
