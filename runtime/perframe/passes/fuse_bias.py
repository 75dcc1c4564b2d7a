"""A constant added to the result of a convolution or product becomes its bias."""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model, Value
from perframe.model.report import refuse
from perframe.passes.match import channel_vector

FAMILIES = ("conv", "conv_transpose", "matmul")


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    fused = 0
    for layer in model.walk():
        if layer.op != "Add" or layer.epilogue:
            continue
        for source, other in (layer.operands, layer.operands[::-1]):
            target = source.producer
            if target is None or target.family not in FAMILIES or target.epilogue or other.constant is None:
                continue
            if target.output is not source or source.only_user is None:
                refuse(layer, f"other layers read the result of {target.name!r} too")
            elif _fuse(model, target, layer, other):
                fused += 1
                break
    return fused


def _is_fixed(value: Value) -> bool:
    """Whether a value is a constant, or made of constants: of weights that take fewer bits."""
    made = value.producer
    return value.constant is not None or (
        made is not None and all(source.constant is not None for source in made.operands)
    )


def _fuse(model: Model, target: Layer, layer: Layer, other: Value) -> bool:
    weights, addend = target.input(1), other.constant
    if not _is_fixed(weights) or addend is None or target.op == "Gemm":
        return False
    made, result = target.output.spec, layer.output.spec
    if not made.shape or result.shape is None or len(made.shape) != len(result.shape):
        return False
    axis = len(made.shape) - 1 if target.family == "matmul" or target.channels_last else 1
    channels = made.shape[axis]
    if not isinstance(channels, int) or made.shape != result.shape:
        return False
    vector = channel_vector(addend, channels, len(made.shape), axis)
    if vector is None or (target.family == "matmul" and len(weights.spec.shape or ()) < 2):
        refuse(layer, f"its constant of shape {addend.shape} is not a number for each of {channels} channels")
        return False
    bias = target.inputs[2] if len(target.inputs) > 2 else None
    if bias is not None:
        old = bias.constant
        if old is None:
            return False
        with np.errstate(over="ignore"):
            vector = (old + vector).astype(np.float32)
        if not np.isfinite(vector).all():
            return False
    target.inputs = [*target.inputs[:2], model.add_constant(f"{target.name}+{layer.name}", vector)]
    model.absorb(target, layer)
    return True
