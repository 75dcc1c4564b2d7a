"""A DFT whose imaginary inputs are all 0 reads only the real parts, as ONNX allows."""

from __future__ import annotations

from perframe.layers.base import normalize_axis
from perframe.model import Evaluate, Model
from perframe.passes.match import Graph


def run(model: Model, evaluate: Evaluate) -> int:
    """Simplify, and return the number of changed layers."""
    graph, changed = Graph(model), 0
    for layer in model.layers:
        if layer.op != "DFT" or layer.attributes.get("inverse") or layer.attributes.get("onesided"):
            continue
        joined = graph.producers.get(layer.inputs[0])
        if joined is None or joined.op != "Concat" or joined.epilogue or len(joined.inputs) != 2:
            continue
        shapes = [graph.specs[name].shape for name in joined.inputs]
        if any(shape is None or not shape or shape[-1] != 1 for shape in shapes):
            continue
        last = normalize_axis(joined.attributes["axis"], len(shapes[0] or ())) == len(shapes[0] or ()) - 1
        if last and _is_zero(graph, joined.inputs[1]):
            layer.inputs[0] = joined.inputs[0]
            changed += 1
    return changed


def _is_zero(graph: Graph, name: str) -> bool:
    """Whether all elements of a value are 0: it is a constant, or one that is repeated."""
    known = graph.constant(name)
    layer = graph.producers.get(name)
    if known is None and layer is not None and layer.op in ("Expand", "Tile") and not layer.epilogue:
        known = graph.constant(layer.inputs[0])
    if known is None and layer is not None and layer.op == "ConstantOfShape" and not layer.epilogue:
        known = layer.attributes.get("value")
        return known is None or not known.any()
    return known is not None and known.dtype.kind == "f" and not known.any()
