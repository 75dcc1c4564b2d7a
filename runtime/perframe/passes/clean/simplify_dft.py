"""A DFT whose imaginary inputs are all 0 reads only the real parts, as ONNX allows."""

from __future__ import annotations

from perframe.ir import Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.passes.patterns import AnyValue, Op, Rules

run = Rules()


@run.rule(Op("DFT", Op("Concat", AnyValue("real"), AnyValue("imaginary"), name="joined", shared=True), epilogue=True))
def _simplify(model: Model, root: Layer, joined: Layer, real: Value, imaginary: Value) -> int:
    shapes = (real.spec.shape, imaginary.spec.shape)
    if root.inverse or root.onesided or len(joined.inputs) != 2:
        return 0
    if any(shape is None or not shape or shape[-1] != 1 for shape in shapes):
        return 0
    rank = len(shapes[0] or ())
    if normalize_axis(joined.axis, rank) != rank - 1 or not _is_zero(imaginary):
        return 0
    root.set_input(0, real)
    return 1


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
