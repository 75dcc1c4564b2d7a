"""Removes layers whose output equals their input."""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph


def _is_noop(graph: Graph, layer: Layer) -> bool:
    if any(name and (name in graph.users or name in graph.model.output_names) for name in layer.outputs[1:]):
        return False
    if layer.op in ("Identity", "Dropout"):
        return True
    given, made = graph.specs[layer.inputs[0]], graph.specs[layer.outputs[0]]
    if given.shape is None or made.shape is None or given.dtype is not made.dtype:
        return False
    same = given.shape == made.shape and None not in given.shape
    if layer.op == "Transpose":
        perm = layer.attributes.get("perm")
        return perm is not None and list(perm) == list(range(len(perm)))
    if layer.op == "Pad":
        pads = graph.constant(layer.inputs[1])
        return pads is not None and not pads.any()
    if layer.op == "Concat":
        return len(layer.inputs) == 1
    if layer.op == "Slice" and same:  # all elements, in order
        steps = graph.constant(layer.inputs[4]) if len(layer.inputs) > 4 else np.ones(1)
        return steps is not None and bool((steps == 1).all())
    return same and (layer.op == "Cast" or layer.declaration.alias or layer.op in ("Expand", "Tile"))


def run(model: Model, evaluate: Evaluate) -> int:
    """Remove, and return the number of layers that were removed."""
    graph, outputs = Graph(model), set(model.output_names)
    kept: list[Layer] = []
    given: dict[str, str] = {}  # the input of each removed layer, by its output
    names = list[tuple[Layer, str, str]]()  # layers, and an output of each with the name that it gets at the end
    removed = 0
    for layer in model.layers:
        layer.inputs = [given.get(name, name) for name in layer.inputs]
        candidate = layer.inputs and not layer.declaration.on_host and not layer.epilogue
        if not candidate or not _is_noop(graph, layer):
            kept.append(layer)
        elif layer.outputs[0] not in outputs:
            given[layer.outputs[0]] = layer.inputs[0]
            removed += 1
        elif (maker := _maker(graph, layer)) is not None:
            names.append((maker, layer.inputs[0], layer.outputs[0]))
            removed += 1
        else:
            kept.append(layer)
    model.layers = kept
    for maker, source, output in names:
        maker.outputs = [output if name == source else name for name in maker.outputs]
    return removed


def _maker(graph: Graph, layer: Layer) -> Layer | None:
    """The layer whose result may get the name of the model's output: no other layer reads it."""
    source = layer.inputs[0]
    return graph.producers.get(source) if graph.only_user(source) is layer else None
