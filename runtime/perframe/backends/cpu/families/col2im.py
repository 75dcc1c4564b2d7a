"""Folding columns into pictures on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.col2im import Folding


def compute(layer: LayerLike, form: Folding, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Add the columns of each element of the block to a strided part of the padded picture."""
    w = form.window
    blocks = inputs[0].reshape(form.batch, form.channels, *w.kernel, *form.columns)
    full = [size + begin + end for size, begin, end in zip(form.size, w.begin, w.end, strict=True)]
    result = np.zeros((form.batch, form.channels, *full), accumulator(inputs[0].dtype))
    for tap in itertools.product(*(range(k) for k in w.kernel)):
        cut = tuple(
            slice(t * spread, t * spread + (count - 1) * stride + 1, stride)
            for t, spread, count, stride in zip(tap, w.dilations, form.columns, w.strides, strict=True)
        )
        result[(slice(None),) * 2 + cut] += blocks[(slice(None),) * 2 + tap]
    inner = tuple(slice(begin, begin + size) for begin, size in zip(w.begin, form.size, strict=True))
    return [result[(slice(None),) * 2 + inner]]
