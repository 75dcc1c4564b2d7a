"""Fourier transforms on GL: each frequency is a sum over all samples, with sines and cosines from a table."""

from __future__ import annotations

import numpy as np

from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.backends.operand import Array
from perframe.layers.spectral import Transform


def supports(call: Call[Transform]) -> str | None:
    """Supports as many samples as fit a shader's rounds."""
    form = call.form
    return None if 4 * form.available <= call.rounds else f"{form.available} samples are too many for one shader"


def lower(call: Call[Transform], tools: Tools) -> list[Binding]:
    """One kernel."""
    form, table = call.form, tools.table(_turn, call.form.length)
    given = {"X": call.x, "T": table, "W": call.input(2) if form.windowed else table}
    return [call.bind("spectral", given, call.y)]


def _turn(length: int) -> Array:
    """Return the cosine and the sine of each fraction of a turn."""
    angles = 2 * np.pi * np.arange(length) / length
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
