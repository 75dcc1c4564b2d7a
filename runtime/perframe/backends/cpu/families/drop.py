"""Elements dropped at random, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.drop import Dropping


def compute(layer: LayerLike, form: Dropping, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Drop elements, and scale the others so that the mean stays."""
    x, ratio, training = inputs
    rate = 0.5 if ratio is None else float(ratio)
    if form.rests or training is None or not bool(training) or rate == 0:
        return [x, np.ones(x.shape, bool)]
    kept = form.drawn(x.shape) >= rate
    scale = 1 / (1 - rate) if rate < 1 else 0.0
    wide = x.astype(accumulator(x.dtype), copy=False)
    return [np.where(kept, wide * wide.dtype.type(scale), wide.dtype.type(0)), kept]
