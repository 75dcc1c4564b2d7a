"""Linear attention on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.layers.attention import LinearState


def compute(layer: LayerLike, form: LinearState, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Token by token, in float32."""
    batch, tokens, heads = form.batch, form.tokens, form.heads

    def per_head(x: Any, count: int) -> Any:
        return x.astype(np.float32).reshape(batch, tokens, count, -1)

    past, decay, beta = (*inputs[3:], None, None, None)[:3]
    query, key, value = per_head(inputs[0], form.query_heads), per_head(inputs[1], heads), per_head(inputs[2], heads)
    factors = np.ones((1, tokens, 1, 1), np.float32) if decay is None else np.exp(per_head(decay, heads))
    rates = None if beta is None else per_head(beta, form.betas)
    state = np.zeros((batch, heads, form.keys, form.values), np.float32)
    if past is not None:
        state = past.astype(np.float32)
    made = np.empty((batch, tokens, form.query_heads, form.values), np.float32)
    for t in range(tokens):
        state = state * factors[:, t, :, :, None]
        new = value[:, t]
        if rates is not None:
            new = rates[:, t] * (new - np.matmul(key[:, t, :, None], state)[:, :, 0])
        state = state + key[:, t, :, :, None] * new[:, :, None]
        grouped = query[:, t].reshape(batch, heads, form.query_heads // heads, form.keys)
        made[:, t] = (form.scale * np.matmul(grouped, state)).reshape(batch, form.query_heads, form.values)
    return [
        result.reshape(known.shape).astype(known.dtype.numpy)
        for result, known in zip((made, state), outputs, strict=False)
    ]
