"""Convolution of channel blocks on GL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.backends.gl.steps import Binding, Call, Tools, epilogue_of, window_params
from perframe.layers.block_conv import BlockConvolution
from perframe.layers.blocks import BLOCK, blocks_of
from perframe.layers.geometry import Window

PIXELS = 4  # of a row, that an invocation computes
SHARED_WIDTHS, SHARED_STRIDES = (1, 3, 5, 7), (1, 2)  # of windows whose pixels share what they read of a line


def lower(call: Call[BlockConvolution], tools: Tools) -> list[Binding]:
    """One kernel, with bias, addend and epilogue in it."""
    form, x, b, addend = call.form, call.x, call.optional(2), call.optional(3)
    window, outputs = form.window, blocks_of(form.outputs)
    depth_blocks, group_blocks = blocks_of(form.depth), outputs // form.groups
    if form.groups > 1 and form.depth == 1:
        depth, blocks, all_blocks, group_blocks = 0, 1, outputs, 1
    else:
        depth = BLOCK if form.takes_blocks else form.depth
        blocks = 2 if form.groups == 1 or group_blocks % 2 == 0 else 1
        all_blocks = depth_blocks * form.groups if form.takes_blocks else depth
    w = call.input(1).derived(
        f"fours of {form.groups} groups, {blocks} x {depth}", lambda value: _packed(value, form.groups, blocks, depth)
    )
    if b is not None:
        b = b.derived("whole blocks", lambda value: np.pad(value, (0, -len(value) % BLOCK)))
    strips = -(-form.output[-1] // PIXELS)
    params: dict[str, Any] = window_params(window, 2, size=form.size, output_=form.output)
    params |= {"depth_blocks": depth_blocks, "group_blocks": group_blocks, "all_blocks": all_blocks}
    params |= {"out_blocks": outputs, "strips": strips}
    numbers = {"PIXELS": PIXELS, "BLOCKS": blocks, "DEPTH": depth, **_sharing(window)}
    numbers |= {"HAS_BIAS": int(b is not None), "HAS_ADDEND": int(addend is not None)}
    grid = (math.prod(form.output[:-1]) * strips, -(-outputs // blocks), form.batch)
    given = {"X": x, "W": w, "B": b or w, "A": addend or x}
    defines = {name: str(number) for name, number in numbers.items()}
    functions = epilogue_of(call.layer, call.y.dtype)
    return [call.bind("compute/block_conv", given, call.y, params, defines, functions, grid=grid)]


def _sharing(window: Window) -> dict[str, int]:
    """The taps of a row and the stride, if there is a variant whose pixels share what they read; else zeros."""
    width, stride = window.kernel[-1], window.strides[-1]
    shares = width in SHARED_WIDTHS and stride in SHARED_STRIDES and (window.dilations[-1] == 1 or width == 1)
    return {"WIDTH": width, "STRIDE": stride} if shares else {"WIDTH": 0, "STRIDE": 0}


def _packed(weights: Any, groups: int, blocks: int, depth_block: int) -> Any:
    """The weights as (so many blocks of outputs, depth block, kernel row, column, block, depth in block, output in
    block). Missing outputs and depths are zero. Without depth: as (block, kernel row, column, output in block).
    """
    outputs, depth = weights.shape[:2]
    kernel = (1, *weights.shape[2:]) if weights.ndim == 3 else weights.shape[2:]
    if not depth_block:
        return np.ascontiguousarray(weights.reshape(-1, BLOCK, *kernel).transpose(0, 2, 3, 1)).reshape(-1)
    per_group = blocks_of(outputs // groups)
    per_group += -per_group % blocks
    depth_blocks = -(-depth // depth_block)
    padded = np.zeros((groups, per_group * BLOCK, depth_blocks * depth_block, *kernel), np.float32)
    padded[:, : outputs // groups, :depth] = weights.reshape(groups, outputs // groups, depth, *kernel)
    split = padded.reshape(groups, per_group // blocks, blocks, BLOCK, depth_blocks, depth_block, *kernel)
    return np.ascontiguousarray(split.transpose(0, 1, 4, 6, 7, 2, 5, 3)).reshape(-1)
