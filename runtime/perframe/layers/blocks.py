"""Channel blocks: values of (batch, channels, *spatial) as (batch, blocks, *spatial, 4).

A block is four channels, so that four adjacent numbers are four channels of one pixel. The last block is filled up with
zeros. ncnn and others call this layout NC4HW4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from perframe.errors import InferenceError
from perframe.layers.attributes import Positive
from perframe.layers.base import Known, layer
from perframe.tensor.partial import Dim, DynamicTensorShape, PartialTensor

BLOCK = 4  # channels

T = TypeVar("T")


@dataclass(frozen=True)
class Blocks:
    """`batch` pictures of `channels` planes with `pixels` each, and the number of blocks of their channels."""

    batch: int
    channels: int
    blocks: int
    pixels: int


def blocks_of(channels: int) -> int:
    """The number of blocks for so many channels."""
    return -(-channels // BLOCK)


def blocked(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return (batch, channels, *spatial) as (batch, blocks, *spatial, 4)."""
    channels = shape[1]
    return (shape[0], blocks_of(channels) if isinstance(channels, int) else None, *shape[2:], BLOCK)


def unblocked(shape: Sequence[Dim], channels: Dim) -> tuple[Dim, ...]:
    """Return (batch, blocks, *spatial, 4) as (batch, channels, *spatial)."""
    return (shape[0], channels, *shape[2:-1])


def check_blocked(x: PartialTensor, shape: DynamicTensorShape, channels: Dim) -> None:
    """Raise InferenceError unless a value holds so many channels in blocks."""
    blocks = blocks_of(channels) if isinstance(channels, int) else shape[1]
    if len(shape) < 3 or not shape.may_be((shape[0], blocks, *shape[2:-1], BLOCK)):
        raise InferenceError(f"{x} does not hold {channels} channels in blocks of {BLOCK}")


@layer()
def ToBlocks(x: PartialTensor) -> PartialTensor:
    if x.shape is not None and len(x.shape) < 2:
        raise InferenceError(f"{x} has no channels")
    return x.with_shape(None if x.shape is None else blocked(x.shape))


@ToBlocks.form
def _to_blocks(inputs: Sequence[Known], outputs: Sequence[Known]) -> Blocks:
    batch, channels, *spatial = inputs[0].shape
    return Blocks(batch, channels, blocks_of(channels), math.prod(spatial))


@dataclass(frozen=True)
class Shuffle(Blocks):
    """Channel k of each of `groups` groups is followed by channel k of the next group."""

    groups: int


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
def _from_blocks(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> Blocks:
    batch, channels, *spatial = outputs[0].shape
    return Blocks(batch, channels, blocks_of(channels), math.prod(spatial))
