"""Channel blocks on GL."""

from __future__ import annotations

from perframe.backends.gl.steps import Binding, Call, Tools
from perframe.layers.blocks import Blocks


def lower(call: Call[Blocks], tools: Tools) -> list[Binding]:
    """One kernel, which takes or makes four channels at once."""
    return [call.bind("to_blocks" if call.layer.op == "ToBlocks" else "from_blocks", {"X": call.x}, call.y)]
