"""A value added to the result of a convolution becomes its addend.

If the value is a smaller one padded with channels of zeros, as in BlazeFace (Bazarevsky et al., 2019), the smaller one
becomes the addend: on the CPU that of a 1 x 1 convolution, on GL of any one on channel blocks.
"""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph
from perframe.tensor import DataType

ADDEND = 3  # the index of a convolution's input for the addend


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    graph, fused = Graph(model), 0
    for layer in list(model.layers):
        if layer.op != "Add" or len(set(layer.inputs)) != 2:
            continue
        for source, other in (layer.inputs[::-1], layer.inputs):
            conv = graph.producer_for(source, "conv", "block_conv")
            if conv is not None and _fits(graph, conv, layer, other):
                conv.inputs = [*[*conv.inputs, ""][:3], other]
                conv.epilogue = layer.epilogue
                graph.absorb(conv, layer)
                fused += 1 + _narrow(graph, conv)
                break
    return fused


def _narrow(graph: Graph, conv: Layer) -> bool:
    """Take the addend without the zeros behind its channels, and return whether that was possible."""
    pad = graph.producer_for(conv.inputs[ADDEND], "pad")
    if pad is None or not _takes_fewer_channels(graph, conv):
        return False
    amounts, value = graph.constant(pad.inputs[1]), [graph.constant(name) for name in pad.inputs[2:3] if name]
    plain = pad.attributes.get("mode", "constant") == "constant" and not any(pad.inputs[3:]) and not pad.epilogue
    if not plain or amounts is None or any(v is None or v.any() for v in value):
        return False
    behind = amounts.size // 2 + 1 if conv.op == "BlockConv" else amounts.size - 1  # the channels' place
    if amounts[behind] < 0 or np.delete(amounts, behind).any():
        return False
    conv.inputs[ADDEND] = pad.inputs[0]
    graph.model.layers.remove(pad)
    graph.refresh()
    return True


def _takes_fewer_channels(graph: Graph, conv: Layer) -> bool:
    """Whether the addend of a convolution may have fewer channels than the result."""
    weights = graph.specs[conv.inputs[1]].shape
    is_plain = weights is not None and all(dim == 1 for dim in weights[2:]) and conv.attributes.get("group", 1) == 1
    return conv.op == "BlockConv" or (conv.channels_last and is_plain)


def _fits(graph: Graph, conv: Layer, layer: Layer, other: str) -> bool:
    """Whether the other value has the result's shape, and the convolution is not depthwise."""
    shapes = {graph.specs[name].shape for name in (*layer.inputs, *layer.outputs)}
    weights = graph.specs[conv.inputs[1]].shape
    if len(shapes) != 1 or None in shapes or graph.specs[other].dtype is not DataType.FLOAT32 or weights is None:
        return False
    takes_addend = conv.op == "BlockConv" or (conv.op == "Conv" and conv.channels_last)
    return takes_addend and not conv.epilogue and not conv.inputs[3:] and weights[1] != 1
