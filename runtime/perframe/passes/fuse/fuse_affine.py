"""A BatchNormalization, or a constant factor per channel, joins the weights of the convolution before it."""

from __future__ import annotations

import numpy as np

from perframe.ir import Layer, Model, Value
from perframe.passes.match import channel_affine, constant_of, in_float32, may_fold
from perframe.passes.patterns import Constant, Op, Rules

run = Rules()
CONV = Op(family="conv conv_transpose", name="conv")


@run.rule(Op("BatchNormalization", CONV))
@run.rule(Op("MultiplyAdd", CONV))
@run.rule(Op("Mul", CONV, Constant("scale"), in_any_order=True))
def _fuse(model: Model, root: Layer, conv: Layer, **_constants: Value) -> int | str:
    source = conv.output
    if not all(value.constant is not None for value in root.operands if value is not source):
        return 0
    weights, bias = conv.w.constant, constant_of(conv.b)
    if weights is None or weights.dtype != np.float32 or (conv.b is not None and bias is None):
        return f"the weights of {conv.name!r} are not float32 constants"
    transposed = conv.op == "ConvTranspose"
    groups = conv.group
    channels = weights.shape[1] * groups if transposed else weights.shape[0]
    affine = channel_affine(root, source, channels, weights.ndim, weights.ndim - 1 if conv.channels_last else 1)
    if affine is None or (transposed and groups > 1):
        return 0
    scale, shift = affine
    if not may_fold(weights, scale):
        return f"its scale and the weights of {conv.name!r} are too large or too small to be multiplied"
    along = (1, -1) if transposed else (-1, 1)
    factors = scale.reshape(*along, *(1,) * (weights.ndim - 2))
    old = np.zeros(channels) if bias is None else bias
    made = in_float32(weights * factors, old * scale + shift)
    if made is None:
        return f"its scale and shift leave float32's range with the weights and the bias of {conv.name!r}"
    new_weights = model.add_constant(f"{conv.w.name}*{root.name}", made[0])
    new_bias = model.add_constant(f"{conv.name}+{root.name}", made[1])
    conv.inputs = [conv.input(0), new_weights, new_bias]
    model.absorb(conv, root)
    return 1
