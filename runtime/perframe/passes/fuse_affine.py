"""A BatchNormalization, or a constant factor per channel, joins the weights of the convolution before it."""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model, Value
from perframe.model.report import refuse
from perframe.passes.match import channel_affine, constant_of, in_float32, may_fold

FAMILIES = ("conv", "conv_transpose")


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    fused = 0
    for layer in model.walk():
        if layer.op not in ("BatchNormalization", "Mul", "MultiplyAdd") or layer.epilogue:
            continue
        for source in dict.fromkeys(layer.operands):
            conv = source.producer
            if conv is None or conv.family not in FAMILIES or conv.epilogue or not _has_constants(layer, source):
                continue
            if source.only_user is None:
                refuse(layer, f"other layers read the result of {conv.name!r} too")
            elif _fuse(model, conv, layer, source):
                fused += 1
                break
    return fused


def _has_constants(layer: Layer, source: Value) -> bool:
    return all(value.constant is not None for value in layer.operands if value is not source)


def _fuse(model: Model, conv: Layer, layer: Layer, source: Value) -> bool:
    weights, bias = conv.w.constant, constant_of(conv.b)
    if weights is None or weights.dtype != np.float32 or (conv.b is not None and bias is None):
        refuse(layer, f"the weights of {conv.name!r} are not float32 constants")
        return False
    transposed = conv.op == "ConvTranspose"
    groups = conv.group
    channels = weights.shape[1] * groups if transposed else weights.shape[0]
    affine = channel_affine(layer, source, channels, weights.ndim, weights.ndim - 1 if conv.channels_last else 1)
    if affine is None or (transposed and groups > 1):
        return False
    scale, shift = affine
    if not may_fold(weights, scale):
        refuse(layer, f"its scale and the weights of {conv.name!r} are too large or too small to be multiplied")
        return False
    along = (1, -1) if transposed else (-1, 1)
    factors = scale.reshape(*along, *(1,) * (weights.ndim - 2))
    old = np.zeros(channels) if bias is None else bias
    made = in_float32(weights * factors, old * scale + shift)
    if made is None:
        refuse(layer, f"its scale and shift leave float32's range with the weights and the bias of {conv.name!r}")
        return False
    new_weights = model.add_constant(f"{conv.w.name}*{layer.name}", made[0])
    new_bias = model.add_constant(f"{conv.name}+{layer.name}", made[1])
    conv.inputs = [conv.input(0), new_weights, new_bias]
    model.absorb(conv, layer)
    return True
