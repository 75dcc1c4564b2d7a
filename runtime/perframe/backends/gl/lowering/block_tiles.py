"""Shared by the convolutions of channel blocks: tiles of pixels by blocks, and the order of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.backends.gl.compile.variants import Choices
from perframe.backends.gl.texels import SHEETS
from perframe.backends.operand import Operand
from perframe.layers.blocks import BLOCK, blocks_of
from perframe.safety.records import dataclass

SMALL_MAP = 128  # pixels of a result: half of a work group of 64 invocations would be idle along them
# The loops of kernels over the weights, the outermost first.
DEPTH_FIRST, ROWS_FIRST, TAPS_FIRST = "depth, row, tap", "row, depth, tap", "row, tap, depth"
FILLED_ROWS = "row, tap of a strip"  # rows of as many taps as a strip has texels


@dataclass(frozen=True)
class Tile:
    """An invocation computes `pixels` pixels, and at most `most_blocks` blocks of outputs for each. A work group has
    `group_rows` rows of invocations, with other blocks.
    """

    pixels: int
    most_blocks: int
    group_rows: int


def chosen(kind: str, is_small: bool, choices: Choices) -> Tile:
    """The device's tile for a convolution."""
    variant = choices[f"{kind}, small map" if is_small else kind]
    return Tile(*map(int, variant.split("x")))


def together(group_blocks: int, groups: int, most: int) -> int:
    """The number of blocks that an invocation computes. It divides those of a group, or wastes few at the end."""
    count = most
    while count > 1 and group_blocks % count and (groups > 1 or group_blocks < 4 * count):
        count //= 2
    return count


def whole_blocks(bias: Operand) -> Operand:
    """A bias with zeros for the missing channels of its last block."""
    return bias.derived("whole blocks", lambda value: np.pad(value, (0, -len(value) % BLOCK)))


def packed(weights: Any, groups: int, blocks: int, depth_block: int, order: str) -> Any:
    """The weights as (blocks of outputs, the loops in their order, part of depth block, block, depth in part, output in
    block). Missing outputs and depths are zero. Without depth: as (block, kernel row, tap, output in block), with rows
    filled up if the order says so.
    """
    outputs, depth = weights.shape[:2]
    kernel = (1, *weights.shape[2:]) if weights.ndim == 3 else weights.shape[2:]
    if not depth_block:
        split = weights.reshape(-1, BLOCK, *kernel).transpose(0, 2, 3, 1)
        filling = SHEETS - kernel[1] if order == FILLED_ROWS else 0
        return np.ascontiguousarray(np.pad(split, ((0, 0), (0, 0), (0, filling), (0, 0)))).reshape(-1)
    per_group = blocks_of(outputs // groups)
    per_group += -per_group % blocks
    depth_blocks, parts = -(-depth // depth_block), max(1, depth_block // BLOCK)
    padded = np.zeros((groups, per_group * BLOCK, depth_blocks * depth_block, *kernel), np.float32)
    padded[:, : outputs // groups, :depth] = weights.reshape(groups, outputs // groups, depth, *kernel)
    split = padded.reshape(groups, per_group // blocks, blocks, BLOCK, depth_blocks, parts, -1, *kernel)
    loops = [{"depth": 4, "row": 7, "tap": 8}[loop] for loop in order.split(", ")]
    return np.ascontiguousarray(split.transpose(0, 1, *loops, 5, 2, 6, 3)).reshape(-1)
