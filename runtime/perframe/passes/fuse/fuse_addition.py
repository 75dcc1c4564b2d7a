"""A value added to the result of a convolution becomes its addend.

If the value is a smaller one padded with channels of zeros, as in BlazeFace (Bazarevsky et al., 2019), the smaller one
becomes the addend: on the CPU that of a 1 x 1 convolution, on GL of any one on channel blocks.
"""

from __future__ import annotations

import numpy as np

from perframe.ir import Layer, Model, Value
from perframe.passes.match import sole_producer
from perframe.passes.patterns import AnyValue, Op, Rules
from perframe.tensor import DataType

ADDEND = 3  # the index of a convolution's input for the addend


run = Rules()


@run.rule(Op("Add", Op(family="conv block_conv", name="conv"), AnyValue("other"), in_any_order=True, epilogue=True))
def _fuse(model: Model, root: Layer, conv: Layer, other: Value) -> int:
    if root.inputs[0] is root.inputs[1] or not _fits(conv, root, other):
        return 0
    conv.set_input(ADDEND, other)
    conv.epilogue = root.epilogue
    model.absorb(conv, root)
    return 1 + _narrow(model, conv)


def _narrow(model: Model, conv: Layer) -> bool:
    """Take the addend without the zeros behind its channels, and return whether that was possible."""
    pad = sole_producer(conv.addend, "pad")
    if pad is None or not _takes_fewer_channels(conv):
        return False
    amounts, value = pad.pads.constant, pad.value
    plain = pad.mode == "constant" and pad.axes is None and not pad.epilogue
    if not plain or amounts is None or (value is not None and (value.constant is None or value.constant.any())):
        return False
    behind = amounts.size // 2 + 1 if conv.op == "BlockConv" else amounts.size - 1  # the channels' place
    if amounts[behind] < 0 or np.delete(amounts, behind).any():
        return False
    conv.set_input(ADDEND, pad.input(0))
    model.remove(pad)
    return True


def _takes_fewer_channels(conv: Layer) -> bool:
    """Whether the addend of a convolution may have fewer channels than the result."""
    weights = conv.w.spec.shape
    is_plain = weights is not None and all(dim == 1 for dim in weights[2:]) and conv.group == 1
    return conv.op == "BlockConv" or (conv.channels_last and is_plain)


def _fits(conv: Layer, layer: Layer, other: Value) -> bool:
    """Whether the other value has the result's shape, and the convolution is not depthwise."""
    shapes = {value.spec.shape for value in (*layer.operands, *layer.results)}
    weights = conv.w.spec.shape
    if len(shapes) != 1 or None in shapes or other.spec.dtype is not DataType.FLOAT32 or weights is None:
        return False
    takes_addend = conv.op == "BlockConv" or (conv.op == "Conv" and conv.channels_last)
    return takes_addend and not conv.epilogue and not conv.inputs[3:] and weights[1] != 1
