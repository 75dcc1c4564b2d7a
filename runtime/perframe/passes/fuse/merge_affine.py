"""A BatchNormalization that no convolution absorbs becomes one multiplication and addition per channel.

Multiplications and additions of constants for each channel after it are merged into it.
"""

from __future__ import annotations

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.report import refuse
from perframe.passes.match import channel_affine, in_float32, may_fold, sole_producer
from perframe.tensor import DataType


def run(model: Model, evaluate: Evaluate) -> int:
    """Merge, and return the number of layers that were changed or removed."""
    changed = 0
    for layer in model.walk():
        if layer.op not in ("BatchNormalization", "Mul", "Add") or layer.epilogue:
            continue
        for source in dict.fromkeys(layer.operands):
            if _merge(model, layer, source):
                changed += 1
                break
    return changed


def _merge(model: Model, layer: Layer, source: Value) -> bool:
    spec, result = source.spec, layer.output.spec
    if spec.dtype is not DataType.FLOAT32 or spec.shape is None or len(spec.shape) < 2 or spec.shape != result.shape:
        return False
    channels, rank = spec.shape[1], len(spec.shape)
    before = sole_producer(source, "elementwise")
    merges = before is not None and before.op == "MultiplyAdd" and not before.epilogue
    if not isinstance(channels, int) or not (merges or layer.op == "BatchNormalization"):
        return False
    affine = channel_affine(layer, source, channels, rank)
    if affine is None:
        return False
    scale, shift = affine
    if before is not None and merges:
        first = channel_affine(before, before.input(0), channels, rank)
        if first is None or not may_fold(first[0], scale):
            return False
        scale, shift = first[0] * scale, first[1] * scale + shift
    made = in_float32(scale, shift) if may_fold(scale) else None
    if made is None:
        refuse(layer, "its scale or shift leaves the range in which constants are merged")
        return False
    shape = (channels, *(1,) * (rank - 2))
    numbers = [
        model.add_constant(f"{layer.name} {what}", value.reshape(shape))
        for what, value in zip(("scale", "shift"), made, strict=True)
    ]
    if before is not None and merges:
        before.inputs = [before.input(0), *numbers]
        model.absorb(before, layer)
    else:
        layer.op, layer.inputs, layer.attributes = "MultiplyAdd", [source, *numbers], {}
    return True
