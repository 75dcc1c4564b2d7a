"""A Transpose of an operand's last two dims becomes an attribute of the product that reads it."""

from __future__ import annotations

from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse

FLAGS = ("transA", "transB")


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    fused = 0
    for layer in model.walk():
        if layer.op == "MatMul":
            fused += sum(_fuse(model, layer, index) for index in (0, 1))
    return fused


def _fuse(model: Model, layer: Layer, index: int) -> bool:
    before = layer.input(index).producer
    if before is None or before.op != "Transpose" or before.epilogue or before.channels_last or before.on_host:
        return False
    if not _turns(before) or layer.inputs[0] is layer.inputs[1]:
        return False
    if before.output.only_user is not layer:
        refuse(before, "other layers read the transposed value too")
        return False
    flag = FLAGS[index]
    layer.attributes[flag] = 1 - getattr(layer, flag)
    layer.set_input(index, before.input(0))
    model.remove(before)
    return True


def _turns(layer: Layer) -> bool:
    """Whether a Transpose exchanges the last two dims and no others."""
    shape = layer.x.spec.shape
    if shape is None or len(shape) < 2:
        return False
    rank = len(shape)
    perm = list(layer.perm or range(rank)[::-1])
    return perm == [*range(rank - 2), rank - 1, rank - 2]
