"""A BatchNormalization, or a multiplication by a constant for each channel, goes into the weights of the
convolution before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph, channel_vector

Vector = NDArray[Any]


def _affine(graph: Graph, layer: Layer, source: str, channels: int, rank: int) -> tuple[Vector, Vector] | None:
    """The (scale, shift) for each channel that the layer amounts to; None when it is none."""
    if layer.op == "BatchNormalization":
        if layer.inputs[0] != source:
            return None
        given = [graph.constant(name) for name in layer.inputs[1:5]]
        if any(value is None or value.dtype != np.float32 for value in given):
            return None
        scale, bias, mean, variance = (value.astype(np.float64) for value in given if value is not None)
        factor = scale / np.sqrt(variance + layer.attributes.get("epsilon", 1e-5))
        return factor, bias - mean * factor
    if layer.op == "Mul":
        other = layer.inputs[1] if layer.inputs[0] == source else layer.inputs[0]
        factor = channel_vector(graph.constant(other), channels, rank, 1)
        return None if factor is None else (factor, np.zeros(channels))
    return None


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse; returns how many layers went."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        if layer.op not in ("BatchNormalization", "Mul") or layer.epilogue:
            continue
        for source in dict.fromkeys(layer.inputs):
            conv = graph.producer_for(source, "conv", "conv_transpose")
            if conv is not None and not conv.epilogue and _fuse(graph, conv, layer, source):
                fused += 1
                break
    return fused


def _fuse(graph: Graph, conv: Layer, layer: Layer, source: str) -> bool:
    model = graph.model
    weights = graph.constant(conv.inputs[1])
    bias = graph.constant(conv.inputs[2]) if len(conv.inputs) > 2 and conv.inputs[2] else None
    if weights is None or weights.dtype != np.float32 or (len(conv.inputs) > 2 and conv.inputs[2] and bias is None):
        return False
    transposed = conv.op == "ConvTranspose"
    groups = conv.attributes.get("group", 1)
    channels = weights.shape[1] * groups if transposed else weights.shape[0]
    affine = _affine(graph, layer, source, channels, weights.ndim)
    if affine is None or (transposed and groups > 1):
        return False
    scale, shift = affine
    along = (1, -1) if transposed else (-1, 1)
    factors = scale.reshape(*along, *(1,) * (weights.ndim - 2))
    old = np.zeros(channels) if bias is None else bias
    new_weights = model.add_constant(f"{conv.inputs[1]}*{layer.name}", (weights * factors).astype(np.float32))
    new_bias = model.add_constant(f"{conv.name}+{layer.name}", (old * scale + shift).astype(np.float32))
    conv.inputs = [conv.inputs[0], new_weights, new_bias]
    graph.absorb(conv, layer)
    return True
