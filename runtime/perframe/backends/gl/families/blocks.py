"""Channel blocks on GL."""

from __future__ import annotations

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.layers.blocks import Blocks, IntoBlocks, OutOfBlocks, Shuffle

DTYPES = ALL_DTYPES  # elements are only moved
KERNELS = {IntoBlocks: "to_blocks", OutOfBlocks: "from_blocks", Shuffle: "shuffle_blocks"}


def lower(call: Call[Blocks], tools: Tools) -> list[Binding]:
    """One kernel, which takes or makes four channels at once."""
    return [call.bind(KERNELS[type(call.form)], {"X": call.x}, call.y)]
