"""Convolution on GL, and what transposed convolution needs of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.backends.gl.lowering.steps import Binding, Call, Tools, epilogue_of, window_params
from perframe.layers.conv import Convolution
from perframe.tensor import DataType


def supports(call: Call[Convolution]) -> str | None:
    """Supports up to three spatial dims, and as many products as fit a shader's rounds."""
    form = call.form
    if len(form.size) > 3:
        return f"convolution over {len(form.size)} dims has no GL kernel"
    if any(call.inputs[3:]) or call.layer.channels_last:
        return "a convolution that was prepared for the CPU has no GL kernel"
    whole = call.y.dtype is not DataType.FLOAT32
    if whole and call.layer.family == "conv_transpose":
        return "transposed convolution of integers has no GL kernel"
    one_by_one = whole or call.layer.family == "conv_transpose" or len(form.size) == 3
    rounds = math.prod(form.window.kernel) * (form.depth + 4) * (4 if one_by_one else 1)
    return None if rounds <= call.rounds else f"{rounds} products for one element are too many for one shader"


def lower(call: Call[Convolution], tools: Tools) -> list[Binding]:
    """One kernel, with the epilogue in it. If invocations can store anywhere, the kernel computes tiles."""
    form, x, w, b = call.form, call.x, call.input(1), call.optional(2)
    window, depth = form.window, form.depth
    whole = call.y.dtype is not DataType.FLOAT32
    dims = 3 if whole else max(2, len(form.size))
    params = window_params(window, dims, size=form.size, output_=form.output) | {"has_bias": b is not None}
    functions = epilogue_of(call.layer, call.y.dtype)
    kernel = "conv_volume" if dims == 3 else "conv"
    if tools.stores_anywhere and kernel == "conv" and w.is_constant:
        per_group = form.outputs // form.groups
        blocks = -(-per_group // 4)
        tiles = form.batch * form.groups * blocks * -(-math.prod(form.output) // 8)
        w = w.derived(f"blocks of {form.groups} groups", lambda value: _blocks(value, form.groups, blocks))
        given = {"X": x, "W": w, "B": b or w}
        return [call.bind("compute/conv", given, call.y, params, functions=functions, tiles=tiles)]
    if kernel == "conv":
        taps, row = math.prod(window.kernel), window.kernel[-1]
        params["weight"] = (depth * taps, taps, row, 1)
        if w.is_constant:  # with the depth last, one read gets four channels
            w = w.derived("depth last", lambda value: np.moveaxis(value, 1, -1).reshape(-1))
            params["weight"] = (depth * taps, 1, row * depth, depth)
    given = {"X": x, "W": w, "B": b or w}
    return [call.bind(kernel, given, call.y, params, functions=functions)]


def _blocks(weights: Any, groups: int, blocks: int) -> Any:
    """The weights packed as (group, block of four outputs, kernel row, column, depth, output in block). Missing outputs
    are zero.
    """
    outputs, depth = weights.shape[:2]
    kernel = (1, *weights.shape[2:]) if weights.ndim == 3 else weights.shape[2:]
    padded = np.zeros((groups, blocks * 4, depth, *kernel), np.float32)
    padded[:, : outputs // groups] = weights.reshape(groups, outputs // groups, depth, *kernel)
    packed = padded.reshape(groups, blocks, 4, depth, *kernel).transpose(0, 1, 4, 5, 3, 2)
    return np.ascontiguousarray(packed).reshape(-1)
