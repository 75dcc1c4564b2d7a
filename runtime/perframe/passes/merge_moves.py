"""Chains of layers that move data become one layer.

Two transpositions become one, and two layers that keep the order of the elements become one Reshape. Two transpositions
that undo each other leave their elementwise layers behind. An Unsqueeze of a transposed value goes before the
Transpose, where it may join a Reshape.
"""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.passes.match import Graph

SAME_ORDER = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")  # the elements stay in their order


def run(model: Model, evaluate: Evaluate) -> int:
    """Merge, and return the number of changed layers."""
    graph, changed = Graph(model), 0
    for layer in list(model.layers):
        if layer.epilogue or layer.channels_last:
            continue
        if layer.op == "Transpose":
            changed += _merge_transposes(graph, layer)
        elif layer.op in SAME_ORDER and not layer.on_host:
            changed += _join(graph, layer) or (layer.op == "Unsqueeze" and _go_before(graph, layer))
    return changed


def _perm(graph: Graph, layer: Layer) -> list[int] | None:
    shape = graph.specs[layer.inputs[0]].shape
    perm = layer.attributes.get("perm")
    return list(perm) if perm else None if shape is None else list(range(len(shape)))[::-1]


def _merge_transposes(graph: Graph, layer: Layer) -> bool:
    chain, source = list[Layer](), layer.inputs[0]
    before = graph.producers.get(source)
    while before is not None and before.op != "Transpose" and _is_unary(graph, before):
        chain.append(before)
        source = next(name for name in before.inputs if graph.constant(name) is None)
        before = graph.producers.get(source)
    if before is None or before.op != "Transpose" or before.epilogue or before.channels_last:
        return False
    first, second = _perm(graph, before), _perm(graph, layer)
    if first is None or second is None or len(first) != len(second):
        return False
    if chain and graph.only_user(source) is None:
        refuse(layer, f"other layers read the transposed value {source!r} too")
        return False
    perm = [first[axis] for axis in second]
    if not chain:
        layer.inputs[0] = before.inputs[0]
        layer.attributes = {"perm": tuple(perm)}
        graph.relink()
        return True
    if perm != list(range(len(perm))):
        return False
    last = chain[0]  # the elementwise layers read the original, and the last of them makes the result
    chain[-1].inputs = [before.inputs[0] if name == source else name for name in chain[-1].inputs]
    for one in (before, layer):
        graph.model.layers.remove(one)
    last.outputs[0] = layer.outputs[0]
    graph.refresh()
    return True


def _is_unary(graph: Graph, layer: Layer) -> bool:
    """Whether a layer computes each element from one element, constant numbers aside, for one reader."""
    if not layer.declaration.is_pointwise or layer.outputs[1:] or graph.only_user(layer.outputs[0]) is None:
        return False
    others = [name for name in layer.inputs if graph.constant(name) is None]
    numbers = [graph.constant(name) for name in layer.inputs if name not in others]
    return len(others) == 1 and bool(others[0]) and all(value is not None and value.size == 1 for value in numbers)


def _join(graph: Graph, layer: Layer) -> bool:
    """Make two layers that keep the order of the elements one Reshape, if its shape is known but for one dim."""
    before = graph.producers.get(layer.inputs[0])
    if before is None or before.op not in SAME_ORDER or before.epilogue or before.on_host:
        return False
    if layer.op == "Reshape":
        shape = graph.constant(layer.inputs[1])
        if shape is not None and (shape.all() or layer.attributes.get("allowzero")):
            layer.inputs[0] = before.inputs[0]
            graph.relink()  # the specs stay: no output changed
            return True
    spec = graph.specs[layer.outputs[0]]
    if (spec.values is not None and spec.value is None) or spec.shape is None or 0 in spec.shape:
        return False
    if sum(not isinstance(dim, int) for dim in spec.shape) > 1:
        refuse(layer, f"more than one dim of its shape {spec.shape} is open")
        return False
    target = np.array([dim if isinstance(dim, int) else -1 for dim in spec.shape], np.int64)
    shape_name = graph.model.add_constant(f"shape of {layer.outputs[0]}", target)
    layer.op, layer.inputs, layer.attributes = "Reshape", [before.inputs[0], shape_name], {}
    graph.relink()
    graph.learn(layer)
    return True


def _go_before(graph: Graph, layer: Layer) -> bool:
    """Exchange an Unsqueeze of one axis with the Transpose before it, if a layer that it can join is before that."""
    moved = graph.producers.get(layer.inputs[0])
    axes = graph.constant(layer.inputs[1]) if len(layer.inputs) > 1 else None
    if (
        moved is None
        or moved.op != "Transpose"
        or moved.epilogue
        or moved.channels_last
        or axes is None
        or axes.size != 1
    ):
        return False
    first, perm = graph.producers.get(moved.inputs[0]), _perm(graph, moved)
    if first is None or first.op not in SAME_ORDER or perm is None or graph.only_user(moved.outputs[0]) is None:
        return False
    axis = int(axes.reshape(())) % (len(perm) + 1)
    source, result, between = moved.inputs[0], layer.outputs[0], moved.outputs[0]
    others = [given + (given >= axis) for given in perm]
    layer.inputs[0], layer.outputs[0] = source, between
    moved.inputs[0], moved.outputs[0] = between, result
    moved.attributes = {"perm": (*others[:axis], axis, *others[axis:])}
    layers = graph.model.layers
    one, other = layers.index(moved), layers.index(layer)
    layers[one], layers[other] = layer, moved
    graph.refresh()
    return True
