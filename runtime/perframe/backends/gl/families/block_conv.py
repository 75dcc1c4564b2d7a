"""Convolution of channel blocks on GL."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from perframe.backends.gl.compile.variants import Choices
from perframe.backends.gl.lowering import block_winograd
from perframe.backends.gl.lowering.block_tiles import (
    DEPTH_FIRST,
    FILLED_ROWS,
    ROWS_FIRST,
    SMALL_MAP,
    TAPS_FIRST,
    Tile,
    chosen,
    packed,
    together,
    whole_blocks,
)
from perframe.backends.gl.lowering.steps import (
    GROUP_COLUMNS,
    GROUP_ROWS,
    Binding,
    Call,
    Tools,
    epilogue_of,
    window_params,
)
from perframe.backends.gl.texels import SHEETS
from perframe.ir.geometry import SlidingWindow
from perframe.layers.block_conv import BlockConvolution
from perframe.layers.blocks import BLOCK, IntoBlocks, blocks_of
from perframe.safety.records import dataclass

SHARED_WIDTHS, SHARED_STRIDES = (1, 3, 5, 7), (1, 2)  # of windows whose pixels share what they read of a line

STRIP = Tile(SHEETS, 1, 1)  # of a pixel shader


@dataclass(frozen=True)
class Patch(Tile):
    """A work group of `lanes` lanes computes pixels in some rows and columns. Its data of one plane lies in shared
    memory, which has room for `texels` texels.
    """

    lanes: int
    texels: int


def lower(call: Call[BlockConvolution], tools: Tools) -> list[Binding]:
    """One kernel, or three for Winograd's transform, including bias, addend and epilogue."""
    if block_winograd.pays(call, tools):
        return block_winograd.lower(call, tools)
    form, x, b, addend = call.form, call.x, call.optional(2), call.optional(3)
    before: list[Binding] = []
    if not (tools.stores_anywhere or form.takes_blocks or form.depth == 1):  # a texture gives four channels at once
        form = replace(form, takes_blocks=True)
        rearranged = IntoBlocks(form.batch, form.channels, blocks_of(form.channels), math.prod(form.size))
        x = tools.scratch((form.batch, rearranged.blocks, *form.size, BLOCK), x.dtype)
        before = [Call(call.layer, rearranged, [call.x], [x]).bind("to_blocks", {"X": call.x}, x)]
    window, outputs, depth_blocks = form.window, blocks_of(form.outputs), blocks_of(form.depth)
    kind, on_pixel = _kind(form), not tools.stores_anywhere
    map_size = call.layer.map_size
    patch = _patch(window, map_size, tools.choices) if kind == "depthwise" and not on_pixel else None
    tile = STRIP if on_pixel else patch or chosen(kind, 0 < map_size <= SMALL_MAP, tools.choices)
    group_blocks, depth = outputs // form.groups, BLOCK if form.takes_blocks else form.depth
    blocks = together(group_blocks, form.groups, tile.most_blocks)
    planes = depth_blocks * form.groups if form.takes_blocks else form.depth  # of a picture, of blocks or channels
    if kind == "depthwise":
        depth, blocks, group_blocks, planes = 0, 1, 1, outputs
    params: dict[str, Any] = window_params(window, 2, size=form.size, output_=form.output)
    params |= {"depth_blocks": depth_blocks, "group_blocks": group_blocks, "planes": planes}
    params |= {"out_blocks": outputs, "has_bias": b is not None}
    params["addend_blocks"] = 0 if addend is None else addend.shape[1]
    numbers, order = {"DEPTH": depth}, DEPTH_FIRST
    across = -(-math.prod(form.output) // tile.pixels)
    if on_pixel:
        width = _shared_taps(window)
        if not width:
            kernel, order = "pixel/block_conv", TAPS_FIRST
        else:
            kernel, order, numbers["WIDTH"] = "pixel/block_conv_lines", ROWS_FIRST, width
            params = _without(params, "stride")
            if width > 1 and kind == "depthwise" and tools.choices["depthwise lines"] == "strips":
                kernel = "pixel/block_depthwise_three" if width == 3 else "pixel/block_depthwise"
                numbers, order = {"WIDTH": width}, FILLED_ROWS
    elif kind == "pointwise":
        kernel, numbers = "compute/block_pointwise", {}
        depth = 2 * BLOCK  # a round of its loop takes two blocks
        params = _without(params, "kernel", "dilation", "begin")
    elif patch is not None:
        kernel, numbers = "compute/block_depthwise", {"PATCH": patch.texels, **_sharing(window)}
        numbers[GROUP_COLUMNS] = patch.lanes
        params = _without(params, "kernel", "dilation", "stride", "depth_blocks", "group_blocks")
        params["rows"], params["columns"] = rows, columns = _shape_of(patch, window, form.size, form.output)
        params["across"] = -(-form.output[1] // columns)
        across = params["across"] * -(-form.output[0] // rows) * patch.lanes
    else:
        kernel, numbers = "compute/block_conv", numbers | _sharing(window)
        params["strips"] = -(-form.output[-1] // tile.pixels)
        across = math.prod(form.output[:-1]) * params["strips"]
    if not on_pixel:
        numbers |= {"PIXELS": tile.pixels, "BLOCKS": blocks, GROUP_ROWS: tile.group_rows}
    w = call.input(1).derived(
        f"{blocks} blocks of {form.groups} groups by {depth}, {order}",
        lambda value: packed(value, form.groups, blocks, depth, order),
    )
    given = {"X": x, "W": w, "B": whole_blocks(b) if b else w, "A": addend or x}
    defines = {name: str(number) for name, number in numbers.items()}
    functions = epilogue_of(call.layer, call.y.dtype)
    grid = (across, -(-outputs // blocks), form.batch)
    return [*before, call.bind(kernel, given, call.y, params, defines, functions, grid=grid)]


def _kind(form: BlockConvolution) -> str:
    """The kernel for a convolution, as variants.py names it."""
    if form.groups > 1 and form.depth == 1:
        return "depthwise"
    has_one_tap = math.prod(form.window.kernel) == 1 and not any(form.window.begin) and not any(form.window.end)
    return "pointwise" if has_one_tap and form.takes_blocks else "window"


def _patch(window: SlidingWindow, map_size: int, choices: Choices) -> Patch | None:
    """The device's patch for a depthwise convolution; None if it has none, or no kernel for such windows. A result that
    is always as small as a small group takes one.
    """
    if len(window.kernel) != 2:
        return None
    (width, height), (stride, down) = window.kernel, window.strides
    if width == 1 or width != height or stride != down or not _sharing(window)["WIDTH"] or window.dilations[0] > 1:
        return None
    of_maps = ", small map" if 0 < map_size <= 64 else ", middle map" if 0 < map_size <= 256 else ""
    variant = choices[f"depthwise patch{of_maps}"]
    if variant == "none":
        return None
    lanes, most = map(int, variant.split("x"))
    pixels = max(1, most // stride**2)  # pixels that lie further apart share less
    return Patch(pixels, 1, 1, lanes, _room(lanes, pixels, width, stride))


def _room(lanes: int, pixels: int, width: int, stride: int) -> int:
    """The texels of the smallest patch that keeps all lanes busy."""
    shapes = [(lanes // columns * pixels, columns) for columns in range(1, lanes + 1) if lanes % columns == 0]
    return min(_texels(*shape, width, stride) for shape in shapes)


def _texels(rows: int, columns: int, width: int, stride: int) -> int:
    """Texels of shared memory for rows and columns of pixels. Columns are an odd number apart."""
    return (((rows - 1) * stride + width) | 1) * ((columns - 1) * stride + width)


@lru_cache(1024)
def _shape_of(patch: Patch, window: SlidingWindow, size: Sequence[int], output: Sequence[int]) -> tuple[int, int]:
    """The rows and columns of pixels that a work group computes: those with the fewest lanes and loads for the whole
    result. An idle lane costs about as much as a load.
    """
    (width, _), (stride, _) = window.kernel, window.strides

    def cost(shape: tuple[int, int]) -> int:
        groups = math.prod(-(-extent // count) for extent, count in zip(output, shape, strict=True))
        loads = (min((count - 1) * stride + width, extent) for count, extent in zip(shape, size, strict=True))
        return groups * (patch.lanes + math.prod(loads))

    shapes = []
    for columns in sorted({-(-output[1] // parts) for parts in range(1, -(-output[1] // 8) + 1)}):
        rows = min(patch.lanes // columns, -(-output[0] // patch.pixels)) * patch.pixels
        while rows > patch.pixels and _texels(rows, columns, width, stride) > patch.texels:
            rows -= patch.pixels
        if rows and _texels(rows, columns, width, stride) <= patch.texels:
            shapes.append((rows, columns))
    return min(shapes, key=cost)


def _without(params: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The params that a kernel has which does not know these names."""
    return {name: value for name, value in params.items() if name not in names}


def _sharing(window: SlidingWindow) -> dict[str, int]:
    """The taps of a row and the stride, if there is a variant whose pixels share what they read; else zeros."""
    width, stride = window.kernel[-1], window.strides[-1]
    shares = width in SHARED_WIDTHS and stride in SHARED_STRIDES and (window.dilations[-1] == 1 or width == 1)
    return {"WIDTH": width, "STRIDE": stride} if shares else {"WIDTH": 0, "STRIDE": 0}


def _shared_taps(window: SlidingWindow) -> int:
    """The taps of a row if lines of the result are as long as those of the data, so that a strip's data is consecutive
    too, and if there is a variant for that width; else 0.
    """
    *_, width = window.kernel
    is_as_long = window.begin[-1] + window.end[-1] == width - 1
    consecutive = is_as_long and set(window.strides) == {1} and (window.dilations[-1] == 1 or width == 1)
    return width if consecutive and width in SHARED_WIDTHS else 0
