"""Elements dropped at random, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.backends.cpu.casting import accumulator


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """A seed drops what it drops in ONNX's own evaluator, which is why the generator is the Mersenne twister."""
    x, ratio, training = (*inputs, None, None)[:3]
    rate = 0.5 if ratio is None else float(ratio)
    if training is None or not bool(training) or rate == 0:
        return [x, np.ones(x.shape, bool)]
    kept = np.random.RandomState(layer.attributes.get("seed")).uniform(0, 1, x.shape) >= rate
    scale = 1 / (1 - rate) if rate < 1 else 0.0
    wide = x.astype(accumulator(x.dtype), copy=False)
    return [np.where(kept, wide * wide.dtype.type(scale), wide.dtype.type(0)), kept]
