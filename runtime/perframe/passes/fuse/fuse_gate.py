"""A value combined with a function of itself, such as x * sigmoid(x), joins the epilogue of the layer before it."""

from __future__ import annotations

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.epilogue import FAMILIES, Stage
from perframe.passes.fuse.fuse_activation import extended, stage_of
from perframe.passes.match import all_float32, sole_producer


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    fused = 0
    for layer in model.walk():
        if layer.family != "elementwise" or len(layer.inputs) != 2 or layer.attributes:
            continue
        for source, gate in (layer.operands, layer.operands[::-1]):
            if _fuse(model, layer, source, gate):
                fused += 2
                break
    return fused


def _fuse(model: Model, layer: Layer, source: Value, gate: Value) -> bool:
    target, function = source.producer, sole_producer(gate, "elementwise")
    if target is None or function is None or target.family not in FAMILIES or target.outputs != (source,):
        return False
    if source.is_output or source.users.keys() != {layer, function}:
        return False
    epilogue, function.epilogue = function.epilogue, ()
    first = stage_of(function, source)
    function.epilogue = epilogue
    shapes = {value.spec.shape for value in (source, gate, layer.output)}
    if first is None or len(shapes) != 1 or not all_float32(target, layer):
        return False
    operands = tuple(None if value is source else (first, *epilogue) for value in layer.inputs)
    whole = extended(target, Stage(layer.op, (), operands), *layer.epilogue)
    if whole is None:
        return False
    target.epilogue = whole
    model.absorb(target, layer)
    model.remove(function)
    return True
