"""Columns of sliding blocks are put back into pictures; overlapping blocks are added up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Extents, Pads
from perframe.ir.declaration import Known, layer
from perframe.ir.geometry import Ints, SlidingWindow, check_window, window
from perframe.ir.sizes.partial import Dim, PartialTensor
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Folding:
    """(batch, channels, *kernel, *columns) becomes (batch, channels, *size); the window slides over the size."""

    batch: int
    channels: int
    window: SlidingWindow
    size: Ints
    columns: Ints


@layer(host=("image_shape", "block_shape"))
def Col2Im(
    x: PartialTensor,
    image_shape: PartialTensor,
    block_shape: PartialTensor,
    *,
    dilations: Extents | None = None,
    pads: Pads | None = None,
    strides: Extents | None = None,
) -> PartialTensor:
    size, block = image_shape.ints(), block_shape.ints()
    if size is None or block is None:
        return x.with_shape(None)
    if len(size) != len(block) or (x.shape is not None and len(x.shape) != 3):
        raise InferenceError(f"{x} does not hold columns of blocks of {block} for pictures of {size}")
    check_window(len(size), block, strides, dilations, pads)
    if any(dim < 1 for dim in block):
        raise InferenceError(f"block_shape is {block}, and positive numbers are expected")
    if x.shape is None:
        return x.with_shape((None, None, *size))
    rows, count = x.shape[1:]
    channels: Dim = None
    if isinstance(rows, int):
        if rows % math.prod(block):
            raise InferenceError(f"{rows} rows do not make channels of blocks of {block}")
        channels = rows // math.prod(block)
    columns = _window(size, block, dilations, pads, strides).output(size)
    if isinstance(count, int) and count != math.prod(columns):
        raise InferenceError(f"blocks of {block} have {columns} positions in pictures of {size}, not {count}")
    return x.with_shape((x.shape[0], channels, *size))


def _window(
    size: Ints,
    block: Ints,
    dilations: Extents | None,
    pads: Pads | None,
    strides: Extents | None,
) -> SlidingWindow:
    chosen = window(size, block, strides, dilations, pads, "NOTSET")
    assert chosen is not None
    return chosen


@Col2Im.form
def _col2im(
    inputs: Sequence[Known],
    outputs: Sequence[Known],
    *,
    dilations: Extents | None,
    pads: Pads | None,
    strides: Extents | None,
) -> Folding:
    batch, channels, *size = outputs[0].shape
    block = tuple(int(v) for v in inputs[2].value.ravel())  # type: ignore[union-attr]
    chosen = _window(tuple(size), block, dilations, pads, strides)
    return Folding(batch, channels, chosen, tuple(size), chosen.output(size))
