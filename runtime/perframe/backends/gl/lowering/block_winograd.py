"""Winograd's convolution of channel blocks on gpu_compute: a quarter of the products, in three launches.

The first takes each tile of the data to its points. The second multiplies at each point: it is a convolution with one
tap and a group of channels for each point. The third makes outputs of the products.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.backends.gl.lowering.block_tiles import DEPTH_FIRST, SMALL_MAP, chosen, packed, together, whole_blocks
from perframe.backends.gl.lowering.steps import GROUP_ROWS, Binding, Call, Functions, Tools, epilogue_of, on_gl
from perframe.backends.winograd import FAR, NEAR, POINTS, TILE, transformed, transforms
from perframe.layers.block_conv import BlockConvolution
from perframe.layers.blocks import BLOCK, blocks_of

# With fewer tiles, reading the weights, which have four times as many elements, costs too much. With fewer products the
# transforms do. Measured on llvmpipe, for maps of 7 to 112 rows and 16 to 512 channels.
FEW_TILES, FEW_PRODUCTS = 24, 2**17
MOST_TEXELS = 2**22  # of points: 64 MiB, half of the largest tensor of llvmpipe
_UNCHANGED = Functions("float epilogue(float x) { return x; }")


def pays(call: Call[BlockConvolution], tools: Tools) -> bool:
    """Whether the device takes this way for a convolution. Its map has the same size in every run, so that no shape
    compiles another kernel. Numbers in half storage are too coarse for the sums of points.
    """
    form, map_size = call.form, call.layer.map_size
    if not (tools.stores_anywhere and form.takes_blocks and len(form.size) == 2 and transforms(form)):
        return False
    tiles = map_size // TILE**2
    if tiles < FEW_TILES or tiles * form.channels * form.outputs < FEW_PRODUCTS:
        return False
    if form.batch * tiles * POINTS * blocks_of(max(form.channels, form.outputs)) > MOST_TEXELS:
        return False
    in_halves = any(on_gl(value.storage).is_half for value in (call.x, call.y))
    return not in_halves and tools.choices["window of 3 x 3"] == "points"


def lower(call: Call[BlockConvolution], tools: Tools) -> list[Binding]:
    """Three kernels. The last one has bias, addend and epilogue in it."""
    form, x, y, b, addend = call.form, call.x, call.y, call.optional(2), call.optional(3)
    channels, outputs = blocks_of(form.channels), blocks_of(form.outputs)
    tiles = [-(-extent // TILE) for extent in form.output]
    count = math.prod(tiles)
    taken = tools.scratch((form.batch, POINTS * channels, count, BLOCK), x.dtype)
    products = tools.scratch((form.batch, POINTS * outputs, count, BLOCK), x.dtype)
    defines = {"NEAR_POINT": repr(NEAR), "FAR_POINT": repr(FAR)}
    into: dict[str, Any] = {"size": form.size, "tiles": tiles, "begin": form.window.begin, "planes": channels}
    first = call.bind("compute/into_points", {"X": x}, taken, into, defines, grid=(count, channels, form.batch))

    tile = chosen("pointwise", count <= SMALL_MAP, tools.choices)
    blocks = together(outputs, POINTS, tile.most_blocks)
    w = call.input(1).derived(f"{blocks} blocks at points", lambda value: _packed_at_points(value, blocks))
    extent: dict[str, Any] = {
        "size": (1, count),
        "output_": (1, count),
        "stride": (1, 1),
        "has_bias": 0,
        "addend_blocks": 0,
    }
    extent |= {"depth_blocks": channels, "planes": POINTS * channels}
    extent |= {"group_blocks": outputs, "out_blocks": POINTS * outputs}
    numbers = {"PIXELS": str(tile.pixels), "BLOCKS": str(blocks), GROUP_ROWS: str(tile.group_rows)}
    grid = (-(-count // tile.pixels), POINTS * outputs // blocks, form.batch)
    given = {"X": taken, "W": w, "B": w, "A": taken}
    second = call.bind("compute/block_pointwise", given, products, extent, numbers, _UNCHANGED, grid=grid)

    out_of: dict[str, Any] = {"tiles": tiles, "output_": form.output, "planes": outputs, "has_bias": b is not None}
    out_of["addend_blocks"] = 0 if addend is None else addend.shape[1]
    given = {"X": products, "B": whole_blocks(b) if b else products, "A": addend or products}
    functions = epilogue_of(call.layer, y.dtype)
    grid = (count, outputs, form.batch)
    return [first, second, call.bind("compute/out_of_points", given, y, out_of, defines, functions, grid=grid)]


def _packed_at_points(weights: Any, blocks: int) -> Any:
    """The weights at the points as those of a convolution with one tap, and a group for each point."""
    points = transformed(weights.swapaxes(0, 1))  # (POINTS, outputs, channels)
    outputs, channels = points.shape[1:]
    whole = np.pad(points, ((0, 0), (0, -outputs % BLOCK), (0, 0)))
    return packed(whole.reshape(-1, channels, 1, 1), POINTS, blocks, 2 * BLOCK, DEPTH_FIRST)
