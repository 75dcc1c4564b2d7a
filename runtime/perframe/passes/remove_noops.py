"""Layers that give back their input are skipped."""

from __future__ import annotations

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
    return same and (layer.op == "Cast" or layer.declaration.alias or layer.op in ("Expand", "Tile"))


def run(model: Model, evaluate: Evaluate) -> int:
    """Skip; returns how many layers went."""
    graph, removed = Graph(model), 0
    for layer in list(model.layers):
        if not layer.inputs or layer.declaration.on_host or layer.epilogue:
            continue
        if layer.outputs[0] in model.output_names or not _is_noop(graph, layer):
            continue
        model.layers.remove(layer)
        model.rename(layer.outputs[0], layer.inputs[0])
        graph.refresh()
        removed += 1
    return removed
