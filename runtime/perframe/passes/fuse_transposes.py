"""A Transpose of an operand's last two dims becomes an attribute of the product that reads it."""

from __future__ import annotations

from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.passes.match import Graph

FLAGS = ("transA", "transB")


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        if layer.op == "MatMul":
            fused += sum(_fuse(graph, layer, index) for index in (0, 1))
    return fused


def _fuse(graph: Graph, layer: Layer, index: int) -> bool:
    before = graph.producers.get(layer.inputs[index])
    if before is None or before.op != "Transpose" or before.epilogue or before.channels_last or before.on_host:
        return False
    if not _turns(graph, before) or layer.inputs[0] == layer.inputs[1]:
        return False
    if graph.only_user(before.outputs[0]) is not layer:
        refuse(before, "other layers read the transposed value too")
        return False
    flag = FLAGS[index]
    layer.attributes = {**layer.attributes, flag: 1 - layer.attributes.get(flag, 0)}
    layer.inputs[index] = before.inputs[0]
    graph.remove(before)
    graph.relink()
    return True


def _turns(graph: Graph, layer: Layer) -> bool:
    """Whether a Transpose exchanges the last two dims and no others."""
    shape = graph.specs[layer.inputs[0]].shape
    if shape is None or len(shape) < 2:
        return False
    rank = len(shape)
    perm = list(layer.attributes.get("perm") or range(rank)[::-1])
    return perm == [*range(rank - 2), rank - 1, rank - 2]
