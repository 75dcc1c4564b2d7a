"""Convolution on GL, and its transpose, which differs in its kernel alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.gl.pool import two
from perframe.backends.gl.steps import Binding, epilogue_functions
from perframe.layers.conv import Convolution
from perframe.layers.epilogue import parameters


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """One or two spatial dims."""
    return "convolution over more than two dims has no GL kernel" if len(outputs[0].shape) > 4 else ""


def lower(
    layer: LayerLike,
    form: Convolution,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
    constant: Callable[[Any], Operand],
) -> list[Binding]:
    """One kernel, with the epilogue in it."""
    x, w, b = (*inputs, None)[:3]
    assert x is not None and w is not None
    window = form.window
    params = {
        "size": two(form.size, 1),
        "output_": two(form.output, 1),
        "kernel": two(window.kernel, 1),
        "stride": two(window.strides, 1),
        "dilation": two(window.dilations, 1),
        "begin": two(window.begin, 0),
        "channels": form.channels,
        "outputs": form.outputs,
        "depth": form.channels // form.groups,
        "has_bias": int(b is not None),
        "p": parameters(layer.epilogue),
    }
    given = {"X": x, "W": w, "B": b or w}
    return [Binding(layer.name, layer.family, given, outputs[0], params, {}, epilogue_functions(layer.epilogue))]
