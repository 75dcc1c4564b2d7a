"""Convolution of channel blocks: the data and the result are (batch, blocks, *spatial, 4), as `layers/blocks.py` says.

The weights are those of a convolution: (outputs, channels / groups, *kernel). Data without blocks is accepted too, so
that a picture of few channels need not be rearranged. The addend may have fewer blocks than the result. `map_size`
is the number of the result's pixels if it is the same in every run, so that a kernel may be chosen by it. A choice by
the sizes of one run would compile another kernel for those of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.ir.attributes import Natural
from perframe.ir.declaration import Known, attributes_of, layer
from perframe.ir.geometry import window
from perframe.ir.sizes.partial import PartialTensor, dim_product
from perframe.layers.blocks import blocked, check_blocked, unblocked
from perframe.layers.conv import Conv, Convolution, check_addend
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class BlockConvolution(Convolution):
    """A convolution whose result is in blocks; its data is too if `takes_blocks`."""

    takes_blocks: bool


@layer()
@attributes_of(Conv.infer)
def BlockConv(
    x: PartialTensor,
    w: PartialTensor,
    b: PartialTensor | None = None,
    addend: PartialTensor | None = None,
    *,
    map_size: Natural = 0,
    **shared: Any,
) -> PartialTensor:
    plain = x
    if x.shape is not None and w.shape is not None and len(x.shape) > len(w.shape):
        channels = dim_product(w.shape[1], shared["group"])
        check_blocked(x, x.shape, channels)
        plain = x.with_shape(unblocked(x.shape, channels))
    made = Conv.infer(plain, w, b, **shared)
    assert isinstance(made, PartialTensor)
    result = x.with_shape(None if made.shape is None else blocked(made.shape))
    if addend is not None:
        check_addend(addend, result)
    return result


@BlockConv.form
def _block_conv(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> BlockConvolution:
    x, w, y = inputs[0], inputs[1], outputs[0]
    takes_blocks, groups = len(x.shape) > len(w.shape), attributes["group"]
    size = tuple(x.shape[2:-1] if takes_blocks else x.shape[2:])
    names = ("strides", "dilations", "pads", "auto_pad")
    chosen = window(size, w.shape[2:], *(attributes[name] for name in names))
    assert chosen is not None
    channels, output = w.shape[1] * groups, tuple(y.shape[2:-1])
    return BlockConvolution(chosen, groups, x.shape[0], channels, w.shape[0], size, output, takes_blocks)
