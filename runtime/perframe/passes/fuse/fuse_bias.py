"""A constant added to the result of a convolution or product becomes its bias."""

from __future__ import annotations

import numpy as np

from perframe.ir import Layer, Model, Value
from perframe.passes.match import channel_vector
from perframe.passes.patterns import Constant, Op, Rules

run = Rules()


@run.rule(Op("Add", Op(family="conv conv_transpose matmul", name="target"), Constant("added"), in_any_order=True))
def _fuse(model: Model, root: Layer, target: Layer, added: Value) -> int | str:
    weights, addend = target.input(1), added.constant
    if not _is_fixed(weights) or addend is None or target.op == "Gemm":
        return 0
    made, result = target.output.spec, root.output.spec
    if not made.shape or result.shape is None or len(made.shape) != len(result.shape):
        return 0
    axis = len(made.shape) - 1 if target.family == "matmul" or target.channels_last else 1
    channels = made.shape[axis]
    if not isinstance(channels, int) or made.shape != result.shape:
        return 0
    vector = channel_vector(addend, channels, len(made.shape), axis)
    if vector is None or (target.family == "matmul" and len(weights.spec.shape or ()) < 2):
        return f"its constant of shape {addend.shape} is not a number for each of {channels} channels"
    bias = target.inputs[2] if len(target.inputs) > 2 else None
    if bias is not None:
        if bias.constant is None:
            return 0
        with np.errstate(over="ignore"):
            vector = (bias.constant + vector).astype(np.float32)
        if not np.isfinite(vector).all():
            return 0
    target.set_input(2, model.add_constant(f"{target.name}+{root.name}", vector))
    model.absorb(target, root)
    return 1


def _is_fixed(value: Value) -> bool:
    """Whether a value is a constant, or made of constants: of weights that take fewer bits."""
    made = value.producer
    return value.constant is not None or (
        made is not None and all(source.constant is not None for source in made.operands)
    )
