"""Reversing sequences on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.reverse import Reversal


def compute(layer: LayerLike, form: Reversal, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Reverse the first elements of each sequence, as many as its length says."""
    flat, lengths = inputs[0].reshape(-1), inputs[1].reshape(-1)
    if not flat.size:
        return [flat]
    at = np.arange(flat.size)
    time, length = at // form.time_step % form.times, lengths[at // form.batch_step % form.batches]
    return [flat[at + np.where(time < length, (length - 1 - 2 * time) * form.time_step, 0)]]
