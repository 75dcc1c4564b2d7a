"""Channel factors before a 1 x 1 convolution multiply its weights instead of the image.

This is for squeeze-and-excitation (Hu, Shen and Sun, 2018), if there are fewer weights than pixels.
"""

from __future__ import annotations

import math

from perframe.ir import Layer, Model, Value
from perframe.passes.match import may_move
from perframe.passes.patterns import AnyValue, Op, Rules
from perframe.passes.place.ranges import Ranges

FACTOR = 4  # the index of a convolution's input for the factors


run = Rules()


@run.rule(
    Op("Conv", Op("Mul", AnyValue("source"), AnyValue("factor"), in_any_order=True, name="scaling"), epilogue=True)
)
def _fuse(model: Model, root: Layer, scaling: Layer, source: Value, factor: Value) -> int:
    if root.inputs[FACTOR:] or not root.channels_last or not _fits(root, source, factor):
        return 0
    if not may_move(max(map(abs, Ranges()[factor]))):
        return 0
    root.set_input(FACTOR, factor)
    root.set_input(0, source)
    model.remove(scaling)
    return 1


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
