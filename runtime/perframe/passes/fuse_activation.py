"""An elementwise layer with constant scalars joins the epilogue of the layer before it."""

from __future__ import annotations

from perframe.layers.epilogue import FAMILIES, Stage, parameters
from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.passes.match import Graph, scalar
from perframe.tensor import DataType

MAX_STAGES = 4
MAX_NUMBERS = 16  # of a layer's own formula and its epilogue together; kernels take any number


def extended(target: Layer, *stages: Stage) -> tuple[Stage, ...] | None:
    """Return the layer's epilogue with more stages; None if it would be too long."""
    epilogue = (*target.epilogue, *stages)
    numbers = len(parameters(epilogue))
    if target.family == "elementwise":
        numbers += len(target.declaration.attributes)
    return epilogue if len(epilogue) <= MAX_STAGES and numbers <= MAX_NUMBERS else None


def stage_of(graph: Graph, layer: Layer, source: str) -> Stage | None:
    """Return the layer as a stage of an epilogue of `source`; None if it cannot be one."""
    data = graph.specs[source]
    if data.values is not None and data.value is None:  # declarations follow no shape arithmetic through an epilogue
        return None
    entry = layer.declaration
    specs = [graph.specs[name] for name in (*layer.inputs, *layer.outputs) if name]
    if layer.family != "elementwise" or "result" in entry.attributes or "to" in entry.attributes or layer.epilogue:
        return None
    if (
        any(spec.dtype is not DataType.FLOAT32 for spec in specs)
        or "" in layer.inputs
        or layer.inputs.count(source) != 1
    ):
        return None
    operands = [None if name == source else scalar(graph.constant(name)) for name in layer.inputs]
    if sum(operand is None for operand in operands) != 1:
        return None
    if graph.specs[source].shape != graph.specs[layer.outputs[0]].shape or graph.specs[source].shape is None:
        return None
    return Stage(layer.op, tuple(sorted(layer.attributes.items())), tuple(operands))


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        for source in dict.fromkeys(layer.inputs):
            target = graph.producer_for(source, *FAMILIES)
            if target is None or target.outputs[1:]:
                continue
            read = target.outputs[0] if target.family == "quantized" else target.inputs[0]
            if graph.specs[read].dtype is not DataType.FLOAT32:
                continue
            stage = stage_of(graph, layer, source)
            epilogue = None if stage is None else extended(target, stage)
            if stage is not None and epilogue is None:
                refuse(layer, f"{target.name!r} has as many fused layers as a kernel takes")
            if epilogue is not None:
                target.epilogue = epilogue
                graph.absorb(target, layer)
                fused += 1
                break
    return fused
