"""Convolution on GL, and its transpose, which differs in its kernel alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.pool import padded
from perframe.backends.gl.steps import ROUNDS, Binding, Tools, epilogue_functions
from perframe.layers.conv import Convolution
from perframe.layers.epilogue import parameters
from perframe.tensor import DataType


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """Up to three spatial dims, and no more products than a shader has rounds for."""
    form: Convolution = layer.form(inputs, outputs)
    if len(form.size) > 3:
        return f"convolution over {len(form.size)} dims has no GL kernel"
    whole = outputs[0].dtype is not DataType.FLOAT32
    if whole and layer.family == "conv_transpose":
        return "transposed convolution of integers has no GL kernel"
    one_by_one = whole or layer.family == "conv_transpose" or len(form.size) == 3
    rounds = math.prod(form.window.kernel) * (form.channels // form.groups + 4) * (4 if one_by_one else 1)
    return "" if rounds <= ROUNDS else f"{rounds} products for one element are too many for one shader"


def lower(
    layer: LayerLike,
    form: Convolution,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel, with the epilogue in it: where invocations can store what they like, one that computes tiles."""
    x, w, b = (*inputs, None)[:3]
    assert x is not None and w is not None
    window, depth = form.window, form.channels // form.groups
    whole = outputs[0].dtype is not DataType.FLOAT32
    dims = 3 if whole or layer.family == "conv_transpose" else max(2, len(form.size))
    params: dict[str, Any] = {
        "size": padded(form.size, 1, dims),
        "output_": padded(form.output, 1, dims),
        "kernel": padded(window.kernel, 1, dims),
        "stride": padded(window.strides, 1, dims),
        "dilation": padded(window.dilations, 1, dims),
        "begin": padded(window.begin, 0, dims),
        "channels": form.channels,
        "outputs": form.outputs,
        "depth": depth,
        "has_bias": int(b is not None),
        "p": parameters(layer.epilogue),
    }
    functions = "int epilogue(int x) { return x; }" if whole else epilogue_functions(layer.epilogue)
    kernel = "conv_volume" if layer.family == "conv" and dims == 3 else layer.family
    if tools.stores_anywhere and kernel == "conv" and w.value is not None:
        per_group = form.outputs // form.groups
        blocks = -(-per_group // 4)
        tiles = form.batch * form.groups * blocks * -(-math.prod(form.output) // 8)
        given = {"X": x, "W": tools.constant(_blocks(w.value, form.groups, blocks)), "B": b or w}
        params["groups"] = form.groups
        return [Binding(layer.name, "compute/conv", given, outputs[0], params, {}, functions, tiles=tiles)]
    if kernel == "conv":
        taps, row = math.prod(window.kernel), window.kernel[-1]
        params["weight"] = (depth * taps, taps, row, 1)
        if w.value is not None:  # depth last, so that four channels are one read
            w = tools.constant(np.moveaxis(w.value, 1, -1).reshape(-1))
            params["weight"] = (depth * taps, 1, row * depth, depth)
    given = {"X": x, "W": w, "B": b or w}
    return [Binding(layer.name, kernel, given, outputs[0], params, {}, functions)]


def _blocks(weights: Any, groups: int, blocks: int) -> Any:
    """Weights packed (group, block of four outputs, kernel row, column, depth, output in block), missing outputs
    zero.
    """
    outputs, depth = weights.shape[:2]
    kernel = (1, *weights.shape[2:]) if weights.ndim == 3 else weights.shape[2:]
    padded = np.zeros((groups, blocks * 4, depth, *kernel), np.float32)
    padded[:, : outputs // groups] = weights.reshape(groups, outputs // groups, depth, *kernel)
    packed = padded.reshape(groups, blocks, 4, depth, *kernel).transpose(0, 1, 4, 5, 3, 2)
    return np.ascontiguousarray(packed).reshape(-1)
