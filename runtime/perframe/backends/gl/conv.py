"""Convolution on GL, and its transpose, which differs in its kernel alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.pool import two
from perframe.backends.gl.steps import ROUNDS, Binding, Tools, epilogue_functions
from perframe.layers.conv import Convolution
from perframe.layers.epilogue import parameters


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """One or two spatial dims."""
    if len(outputs[0].shape) > 4:
        return "convolution over more than two dims has no GL kernel"
    form: Convolution = layer.form(inputs, outputs)
    rounds = (
        math.prod(form.window.kernel) * (form.channels // form.groups + 4) * (4 if layer.op == "ConvTranspose" else 1)
    )
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
    params: dict[str, Any] = {
        "size": two(form.size, 1),
        "output_": two(form.output, 1),
        "kernel": two(window.kernel, 1),
        "stride": two(window.strides, 1),
        "dilation": two(window.dilations, 1),
        "begin": two(window.begin, 0),
        "channels": form.channels,
        "outputs": form.outputs,
        "depth": depth,
        "has_bias": int(b is not None),
        "p": parameters(layer.epilogue),
    }
    functions = epilogue_functions(layer.epilogue)
    if tools.stores_anywhere and layer.family == "conv" and w.value is not None:
        per_group = form.outputs // form.groups
        blocks = -(-per_group // 4)
        tiles = form.batch * form.groups * blocks * -(-math.prod(form.output) // 8)
        given = {"X": x, "W": tools.constant(_blocks(w.value, form.groups, blocks)), "B": b or w}
        params["groups"] = form.groups
        return [Binding(layer.name, "compute/conv", given, outputs[0], params, {}, functions, tiles=tiles)]
    if layer.family == "conv":
        taps, row = math.prod(window.kernel), window.kernel[-1]
        params["weight"] = (depth * taps, taps, row, 1)
        if w.value is not None:  # depth last, so that four channels are one read
            w = tools.constant(np.moveaxis(w.value, 1, -1).reshape(-1))
            params["weight"] = (depth * taps, 1, row * depth, depth)
    given = {"X": x, "W": w, "B": b or w}
    return [Binding(layer.name, layer.family, given, outputs[0], params, {}, functions)]


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
