"""A number that multiplies an operand of a product moves to its constant operand, or else to its result."""

from __future__ import annotations

import numpy as np

from perframe.layers.epilogue import Stage
from perframe.model import Evaluate, Layer, Model, Value
from perframe.model.report import refuse
from perframe.passes.fuse_activation import with_stages
from perframe.passes.match import all_float32, may_fold, may_move, scalar


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    fused = 0
    for layer in model.walk():
        if layer.op == "MatMul":
            for index in (0, 1):
                fused += _fuse(model, layer, index)
    return fused


def _fuse(model: Model, layer: Layer, index: int) -> bool:
    scaling = layer.input(index).producer
    if scaling is None or scaling.op not in ("Mul", "Div") or scaling.epilogue or len(scaling.inputs) != 2:
        return False
    found = _scaled(scaling)
    if found is None or not all_float32(layer, scaling):
        return False
    source, factor = found
    if scaling.output.only_user is not layer or layer.inputs[0] is layer.inputs[1]:
        refuse(scaling, "other layers read the scaled value too")
        return False
    factors = layer.input(1 - index)
    other = factors.constant
    if other is not None and len(factors.users) > 1:
        refuse(scaling, f"other layers read the constant {factors.name!r} too")
        return False
    if not (may_move(factor) if other is None else may_fold(other, factor)):
        refuse(scaling, f"the factor {factor:g} may keep the product within float32's range")
        return False
    if other is not None:
        scaled = (other.astype(np.float64) * factor).astype(np.float32)
        layer.set_input(1 - index, model.add_constant(f"{factors.name}*{factor:g}", scaled))
    elif len(layer.inputs) > 2:
        refuse(scaling, "the product has a bias, which is not scaled")
        return False
    else:
        epilogue = with_stages(layer, _with_factor(layer, factor))
        if epilogue is None:
            refuse(scaling, "the product's epilogue is full")
            return False
        layer.epilogue = epilogue
    layer.set_input(index, source)
    model.remove(scaling)
    return True


def _scaled(layer: Layer) -> tuple[Value, float] | None:
    """The value that a layer multiplies by a number, and the number; None for any other layer."""
    for source, other in (layer.operands, layer.operands[::-1]):
        number = scalar(other.constant)
        if number is None or source.spec.shape != layer.output.spec.shape:
            continue
        if layer.op == "Mul":
            return source, number
        if layer.op == "Div" and other is layer.inputs[1] and number:
            return source, 1 / number
    return None


def _with_factor(layer: Layer, factor: float) -> tuple[Stage, ...]:
    """The product's epilogue after a factor; a factor that is there already is multiplied."""
    stages = layer.epilogue
    first = stages[0].operands[1] if stages and stages[0].op == "Mul" and stages[0].operands[0] is None else None
    if isinstance(first, float) and may_fold(first, factor):
        return (Stage("Mul", (), (None, float(np.float32(first * factor)))), *stages[1:])
    return (Stage("Mul", (), (None, float(np.float32(factor)))), *stages)
