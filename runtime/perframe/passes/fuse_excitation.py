"""Channel factors before a 1 x 1 convolution multiply its weights instead of the image.

This is for squeeze-and-excitation (Hu, Shen and Sun, 2018), if there are fewer weights than pixels.
"""

from __future__ import annotations

import math

from perframe.model import Evaluate, Layer, Model, Value
from perframe.passes.match import may_move
from perframe.passes.ranges import Range, ranges

FACTOR = 4  # the index of a convolution's input for the factors


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of layers that were removed."""
    fused = 0
    numbers: dict[Value, Range] = {}  # asked for once, and only if a layer fits: a fusion leaves them as they are
    for layer in model.walk():
        if layer.op != "Mul" or layer.epilogue:
            continue
        conv = layer.output.only_user
        if conv is None or conv.op != "Conv" or conv.x is not layer.output or conv.inputs[FACTOR:]:
            continue
        for source, factor in (layer.operands, layer.operands[::-1]):
            if not conv.channels_last or not _fits(conv, source, factor):
                continue
            numbers = numbers or ranges(model)
            if may_move(max(map(abs, numbers[factor]))):
                conv.set_input(FACTOR, factor)
                conv.set_input(0, source)
                model.remove(layer)
                fused += 1
                break
    return fused


def _fits(conv: Layer, source: Value, factor: Value) -> bool:
    """Whether there is one factor for each channel of a single picture, and each weight meets one channel.

    There must also be fewer output channels than pixels, so that the weights are fewer.
    """
    data, factors, weights = (value.spec.shape for value in (source, factor, conv.input(1)))
    if data is None or factors is None or weights is None or not data.is_static or len(factors) != len(data):
        return False
    one = data[0] == 1 and all(dim == 1 for dim in factors[:-1]) and factors[-1] == data[-1]
    plain = all(dim == 1 for dim in weights[2:]) and conv.group == 1
    pads = conv.pads or ()
    pixels = math.prod(dim for dim in data[1:-1] if isinstance(dim, int))
    outputs = weights[0]
    return one and plain and not any(pads) and isinstance(outputs, int) and outputs < pixels
