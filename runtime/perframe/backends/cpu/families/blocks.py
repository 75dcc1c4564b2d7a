"""Channel blocks on the CPU, in NumPy. No plan for the CPU has them, but tests compare other kernels with this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.blocks import BLOCK, Blocks, IntoBlocks, Shuffle


def compute(layer: LayerLike, form: Blocks, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Rearrange the channels."""
    if isinstance(form, Shuffle):
        x = from_blocks(inputs[0], form.channels)
        apart = x.reshape(form.batch, form.groups, form.channels // form.groups, form.pixels)
        return [to_blocks(np.swapaxes(apart, 1, 2).reshape(x.shape))]
    return [to_blocks(inputs[0]) if isinstance(form, IntoBlocks) else from_blocks(inputs[0], form.channels)]


def to_blocks(x: Any) -> Any:
    """Return (batch, channels, *spatial) as (batch, blocks, *spatial, 4)."""
    batch, channels, *spatial = x.shape
    padded = np.pad(x, [(0, 0), (0, -channels % BLOCK), *((0, 0) for _ in spatial)])
    return np.moveaxis(padded.reshape(batch, -(-channels // BLOCK), BLOCK, *spatial), 2, -1)


def from_blocks(x: Any, channels: int) -> Any:
    """Return (batch, blocks, *spatial, 4) as (batch, channels, *spatial)."""
    batch, blocks, *spatial = x.shape[:-1]
    return np.moveaxis(x, -1, 2).reshape(batch, blocks * BLOCK, *spatial)[:, :channels]
