"""A BatchNormalization, or a constant factor per channel, joins the weights of the convolution before it."""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.passes.match import Graph, channel_affine, in_float32, may_fold

FAMILIES = ("conv", "conv_transpose")


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        if layer.op not in ("BatchNormalization", "Mul", "MultiplyAdd") or layer.epilogue:
            continue
        for source in dict.fromkeys(layer.inputs):
            conv = graph.producers.get(source)
            if conv is None or conv.family not in FAMILIES or conv.epilogue or not _has_constants(graph, layer, source):
                continue
            if graph.only_user(source) is None:
                refuse(layer, f"other layers read the result of {conv.name!r} too")
            elif _fuse(graph, conv, layer, source):
                fused += 1
                break
    return fused


def _has_constants(graph: Graph, layer: Layer, source: str) -> bool:
    return all(graph.constant(name) is not None for name in layer.inputs if name and name != source)


def _fuse(graph: Graph, conv: Layer, layer: Layer, source: str) -> bool:
    model = graph.model
    weights = graph.constant(conv.inputs[1])
    bias = graph.constant(conv.inputs[2]) if len(conv.inputs) > 2 and conv.inputs[2] else None
    if weights is None or weights.dtype != np.float32 or (len(conv.inputs) > 2 and conv.inputs[2] and bias is None):
        refuse(layer, f"the weights of {conv.name!r} are not float32 constants")
        return False
    transposed = conv.op == "ConvTranspose"
    groups = conv.attributes.get("group", 1)
    channels = weights.shape[1] * groups if transposed else weights.shape[0]
    affine = channel_affine(graph, layer, source, channels, weights.ndim, weights.ndim - 1 if conv.channels_last else 1)
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
    new_weights = model.add_constant(f"{conv.inputs[1]}*{layer.name}", made[0])
    new_bias = model.add_constant(f"{conv.name}+{layer.name}", made[1])
    conv.inputs = [conv.inputs[0], new_weights, new_bias]
    graph.absorb(conv, layer)
    return True
