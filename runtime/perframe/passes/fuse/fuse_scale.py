"""A number that multiplies an operand of a product moves to its constant operand, or else to its result."""

from __future__ import annotations

import numpy as np

from perframe.ir import Layer, Model, Value
from perframe.ir.epilogue import Stage
from perframe.passes.fuse.fuse_activation import with_stages
from perframe.passes.match import all_float32, may_fold, may_move, scalar
from perframe.passes.patterns import AnyValue, Op, Rules

run = Rules()
SCALING = Op("Mul Div", AnyValue("first"), AnyValue("second"), name="scaling")


@run.rule(Op("MatMul", SCALING, epilogue=True))
def _left(model: Model, root: Layer, scaling: Layer, **_inputs: Value) -> int | str:
    return _fuse(model, root, scaling, 0)


@run.rule(Op("MatMul", AnyValue("other"), SCALING, epilogue=True))
def _right(model: Model, root: Layer, scaling: Layer, **_inputs: Value) -> int | str:
    return _fuse(model, root, scaling, 1)


def _fuse(model: Model, layer: Layer, scaling: Layer, index: int) -> int | str:
    found = _scaled(scaling)
    if found is None or not all_float32(layer, scaling):
        return 0
    source, factor = found
    if layer.inputs[0] is layer.inputs[1]:
        return "it multiplies the scaled value by itself"
    factors = layer.input(1 - index)
    other = factors.constant
    if other is not None and len(factors.users) > 1:
        return f"other layers read the constant {factors.name!r} too"
    if not (may_move(factor) if other is None else may_fold(other, factor)):
        return f"the factor {factor:g} may keep the product within float32's range"
    if other is not None:
        scaled = (other.astype(np.float64) * factor).astype(np.float32)
        layer.set_input(1 - index, model.add_constant(f"{factors.name}*{factor:g}", scaled))
    elif len(layer.inputs) > 2:
        return "the product has a bias, which is not scaled"
    else:
        epilogue = with_stages(layer, _with_factor(layer, factor))
        if epilogue is None:
            return "the product's epilogue is full"
        layer.epilogue = epilogue
    layer.set_input(index, source)
    model.remove(scaling)
    return 1


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
