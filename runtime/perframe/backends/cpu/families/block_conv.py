"""Convolution of channel blocks on the CPU, in NumPy, for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.cpu.families import conv
from perframe.backends.cpu.families.blocks import from_blocks, to_blocks
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.block_conv import BlockConvolution
from perframe.layers.conv import Conv


def compute(layer: LayerLike, form: BlockConvolution, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Convolve the planes, and add the addend in blocks."""
    x, w, b, addend = inputs
    plain = from_blocks(x, form.channels) if form.takes_blocks else x
    (made,) = conv.compute(layer, form, Conv.complete([plain, w, b]), outputs)
    result = to_blocks(made)
    if addend is not None:
        result[:, : addend.shape[1]] += addend
    return [result]
