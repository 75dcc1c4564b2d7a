"""A value combined with a function of itself, such as x * sigmoid(x), joins the epilogue of the layer before it."""

from __future__ import annotations

from perframe.layers.epilogue import FAMILIES, Stage
from perframe.model import Evaluate, Layer, Model
from perframe.passes.fuse_activation import extended, stage_of
from perframe.passes.match import Graph


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        if layer.family != "elementwise" or len(layer.inputs) != 2 or layer.attributes:
            continue
        for source, gate in (layer.inputs, layer.inputs[::-1]):
            if _fuse(graph, layer, source, gate):
                fused += 2
                break
    return fused


def _fuse(graph: Graph, layer: Layer, source: str, gate: str) -> bool:
    target, function = graph.producers.get(source), graph.producer_for(gate, "elementwise")
    if target is None or function is None or target.family not in FAMILIES or target.outputs != [source]:
        return False
    if source in graph.model.output_names or {id(user) for user in graph.users[source]} != {id(layer), id(function)}:
        return False
    epilogue, function.epilogue = function.epilogue, ()
    first = stage_of(graph, function, source)
    function.epilogue = epilogue
    shapes = {graph.specs[name].shape for name in (source, gate, layer.outputs[0])}
    if first is None or len(shapes) != 1 or not graph.all_float32(target, layer):
        return False
    operands = tuple(None if name == source else (first, *epilogue) for name in layer.inputs)
    whole = extended(target, Stage(layer.op, (), operands), *layer.epilogue)
    if whole is None:
        return False
    target.epilogue = whole
    graph.model.layers.remove(function)
    graph.absorb(target, layer)
    return True
