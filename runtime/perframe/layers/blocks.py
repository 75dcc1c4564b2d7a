"""Channel blocks: values of (batch, channels, *spatial) as (batch, blocks, *spatial, 4).

A block is four channels, so that four adjacent numbers are four channels of one pixel. The last block is filled up with
zeros. ncnn and others call this layout NC4HW4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import floordiv
from typing import Any, Literal, TypeVar

from perframe.errors import InferenceError
from perframe.ir.attributes import Positive
from perframe.ir.declaration import Known, layer
from perframe.ir.geometry import View
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor, derived, dim_product
from perframe.layers.move import view_in_order
from perframe.safety.records import dataclass

BLOCK = 4  # channels

T = TypeVar("T")


@dataclass(frozen=True)
class Blocks:
    """`batch` pictures of `channels` planes with `pixels` each, and the number of blocks of their channels."""

    batch: int
    channels: int
    blocks: int
    pixels: int


@dataclass(frozen=True)
class IntoBlocks(Blocks):
    """Planes become blocks."""


@dataclass(frozen=True)
class OutOfBlocks(Blocks):
    """Blocks become planes."""


@dataclass(frozen=True)
class Shuffle(Blocks):
    """Channel k of each of `groups` groups is followed by channel k of the next group."""

    groups: int


def blocks_of(channels: int) -> int:
    """The number of blocks for `channels` channels."""
    return -(-channels // BLOCK)


def blocked(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return (batch, channels, *spatial) as (batch, blocks, *spatial, 4)."""
    channels = shape[1]
    return (shape[0], derived(blocks_of, channels), *shape[2:], BLOCK)


def unblocked(shape: Sequence[Dim], channels: Dim) -> tuple[Dim, ...]:
    """Return (batch, blocks, *spatial, 4) as (batch, channels, *spatial)."""
    return (shape[0], channels, *shape[2:-1])


def check_blocked(x: PartialTensor, shape: DynamicTensorShape, channels: Dim) -> None:
    """Raise InferenceError unless a value holds `channels` channels in blocks."""
    blocks = blocks_of(channels) if isinstance(channels, int) else shape[1]
    if len(shape) < 3 or not shape.may_be((shape[0], blocks, *shape[2:-1], BLOCK)):
        raise InferenceError(f"{x} does not hold {channels} channels in blocks of {BLOCK}")


@layer()
def ToBlocks(x: PartialTensor) -> PartialTensor:
    if x.shape is not None and len(x.shape) < 2:
        raise InferenceError(f"{x} has no channels")
    return x.with_shape(None if x.shape is None else blocked(x.shape))


@ToBlocks.form
def _to_blocks(inputs: Sequence[Known], outputs: Sequence[Known]) -> IntoBlocks:
    batch, channels, *spatial = inputs[0].shape
    return IntoBlocks(batch, channels, blocks_of(channels), math.prod(spatial))


@layer()
def ShuffleBlocks(x: PartialTensor, *, groups: Positive) -> PartialTensor:
    if x.shape is not None:
        check_blocked(x, x.shape, x.shape[1] * BLOCK if isinstance(x.shape[1], int) else None)
    return x.with_shape(x.shape)


@ShuffleBlocks.form
def _shuffle(inputs: Sequence[Known], outputs: Sequence[Known], *, groups: int) -> Shuffle:
    batch, blocks, *spatial, _ = inputs[0].shape
    if blocks * BLOCK % groups:
        raise InferenceError(f"{blocks * BLOCK} channels do not make {groups} groups")
    return Shuffle(batch, blocks * BLOCK, blocks, math.prod(spatial), groups)


@layer()
def FromBlocks(x: PartialTensor, *, channels: Positive) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    check_blocked(x, x.shape, channels)
    return x.with_shape(unblocked(x.shape, channels))


@FromBlocks.form
def _from_blocks(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> OutOfBlocks:
    batch, channels, *spatial = outputs[0].shape
    return OutOfBlocks(batch, channels, blocks_of(channels), math.prod(spatial))


@layer(family="move")
def BlocksToSpace(x: PartialTensor, *, blocksize: Positive, mode: Literal["DCR", "CRD"] = "DCR") -> PartialTensor:
    """DepthToSpace of channel blocks. "DCR" makes channel blocks; "CRD" makes (batch, channels, rows, columns)."""
    if x.shape is None:
        return x.with_shape(None)
    if len(x.shape) != 5 or x.shape[4] not in (BLOCK, None):
        raise InferenceError(f"{x} does not hold pictures in blocks of {BLOCK}")
    n, blocks, h, w, _ = x.shape
    area = blocksize**2
    whole = area if mode == "DCR" else max(1, area // BLOCK)
    if area % BLOCK and mode == "CRD":
        raise InferenceError(f"{area} pixels make no whole blocks")
    if isinstance(blocks, int) and blocks % whole:
        raise InferenceError(f"the blocks of {x} are not a multiple of {whole}")
    channels = derived(floordiv, blocks, whole)
    grown = [dim_product(dim, blocksize) for dim in (h, w)]
    return x.with_shape((n, channels, *grown, *((BLOCK,) if mode == "DCR" else ())))


@BlocksToSpace.form
def _blocks_to_space(inputs: Sequence[Known], outputs: Sequence[Known], *, blocksize: int, mode: str) -> list[View]:
    (n, _, h, w, _), channels, b = inputs[0].shape, outputs[0].shape[1], blocksize
    if mode == "DCR":
        return [view_in_order((n, b, b, channels, h, w, BLOCK), (0, 3, 4, 1, 5, 2, 6))]
    if b * b == BLOCK:
        return [view_in_order((n, channels, h, w, b, b), (0, 1, 2, 4, 3, 5))]
    return [view_in_order((n, channels, b, b // BLOCK, h, w, BLOCK), (0, 1, 4, 2, 5, 3, 6))]
