"""Fourier transforms on GL: every frequency is a sum over the samples, with the angles from a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import ROUNDS, Binding, Tools
from perframe.layers.spectral import Transform


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """As many samples as one shader may walk."""
    if not layer.declaration.form_of:
        return f"{layer.op} has no GL kernel"
    form: Transform = layer.form(inputs, outputs)
    return "" if 4 * form.available <= ROUNDS else f"{form.available} samples are too many for one shader"


def lower(
    layer: LayerLike,
    form: Transform,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    x, window = inputs[0], inputs[2] if layer.op == "STFT" and len(inputs) > 2 else None
    assert x is not None
    angles = 2 * np.pi * np.arange(form.length) / form.length
    table = tools.constant(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))
    names = ("size", "inner", "parts", "frames", "step", "length", "available", "bins", "output_parts")
    params: dict[str, Any] = {name: getattr(form, name) for name in names}
    params |= {
        "mirrored": int(form.mirrored),
        "windowed": int(window is not None),
        "direction": 1.0 if form.inverse else -1.0,
        "scale": 1.0 / form.length if form.inverse else 1.0,
    }
    return [Binding(layer.name, "spectral", {"X": x, "T": table, "W": window or table}, outputs[0], params)]
