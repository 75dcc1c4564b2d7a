"""A DFT whose imaginary inputs are all 0 reads only the real parts, as ONNX allows."""

from __future__ import annotations

from perframe.layers.base import normalize_axis
from perframe.model import Evaluate, Model, Value


def run(model: Model, evaluate: Evaluate) -> int:
    """Simplify, and return the number of changed layers."""
    changed = 0
    for layer in model.walk():
        if layer.op != "DFT" or layer.inverse or layer.onesided:
            continue
        joined = layer.x.producer
        if joined is None or joined.op != "Concat" or joined.epilogue or len(joined.inputs) != 2:
            continue
        shapes = [value.spec.shape for value in joined.operands]
        if any(shape is None or not shape or shape[-1] != 1 for shape in shapes):
            continue
        last = normalize_axis(joined.axis, len(shapes[0] or ())) == len(shapes[0] or ()) - 1
        if last and _is_zero(joined.input(1)):
            layer.set_input(0, joined.input(0))
            changed += 1
    return changed


def _is_zero(value: Value) -> bool:
    """Whether all elements of a value are 0: it is a constant, or one that is repeated."""
    known = value.constant
    layer = value.producer
    if known is None and layer is not None and layer.op in ("Expand", "Tile") and not layer.epilogue:
        known = layer.input(0).constant
    if known is None and layer is not None and layer.op == "ConstantOfShape" and not layer.epilogue:
        known = layer.value
        return known is None or not known.any()
    return known is not None and known.dtype.kind == "f" and not known.any()
