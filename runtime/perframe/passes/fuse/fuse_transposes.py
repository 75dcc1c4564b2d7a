"""A Transpose of an operand's last two dims becomes an attribute of the product that reads it."""

from __future__ import annotations

from perframe.ir import Layer, Model, Value
from perframe.passes.patterns import AnyValue, Op, Rules

run = Rules()
TURNED = Op("Transpose", AnyValue("source"), name="turn")


@run.rule(Op("MatMul", TURNED, epilogue=True))
def _first(model: Model, root: Layer, turn: Layer, source: Value) -> int:
    return _fuse(model, root, turn, 0, "transA")


@run.rule(Op("MatMul", AnyValue("other"), TURNED, epilogue=True))
def _second(model: Model, root: Layer, turn: Layer, source: Value, other: Value) -> int:
    return _fuse(model, root, turn, 1, "transB")


def _fuse(model: Model, layer: Layer, turn: Layer, index: int, flag: str) -> int:
    if turn.channels_last or not turns(turn) or layer.inputs[0] is layer.inputs[1]:
        return 0
    layer.attributes[flag] = 1 - getattr(layer, flag)
    layer.set_input(index, turn.input(0))
    model.remove(turn)
    return 1


def turns(layer: Layer) -> bool:
    """Whether a Transpose exchanges the last two dims and no others."""
    shape = layer.x.spec.shape
    if shape is None or len(shape) < 2:
        return False
    rank = len(shape)
    perm = list(layer.perm or range(rank)[::-1])
    return perm == [*range(rank - 2), rank - 1, rank - 2]
