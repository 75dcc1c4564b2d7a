"""Channel blocks on GL."""

from __future__ import annotations

from perframe.backends.gl.steps import Binding, Call, Tools
from perframe.layers.blocks import Blocks

KERNELS = {"ToBlocks": "to_blocks", "FromBlocks": "from_blocks", "ShuffleBlocks": "shuffle_blocks"}


def lower(call: Call[Blocks], tools: Tools) -> list[Binding]:
    """One kernel, which takes or makes four channels at once."""
    return [call.bind(KERNELS[call.layer.op], {"X": call.x}, call.y)]
