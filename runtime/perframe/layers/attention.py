"""Attention whose state has a fixed size: a matrix of each head that every token changes and reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perframe.errors import InferenceError
from perframe.layers.base import layer
from perframe.spec import Dim, PartialTensor

_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


@dataclass(frozen=True)
class LinearState:
    """Per token S = exp(decay) * S + k ⊗ v', and the output scale * q S.

    v' is v, or with `delta` beta * (v - k S) of the decayed S. q has `query_heads`, all else `heads`, each read by
    `query_heads // heads` of them. `decays` and `betas` are the last dims of those inputs, 0 where there is none.
    """

    batch: int
    tokens: int
    query_heads: int
    heads: int
    keys: int
    values: int
    scale: float
    delta: bool
    decays: int
    betas: int


def _packed(x: PartialTensor, heads: int, name: str) -> tuple[Dim, Dim, Dim]:
    """Batch, tokens and the size of a head."""
    if x.shape is None:
        return None, None, None
    if len(x.shape) != 3:
        raise InferenceError(f"{name} is {x}, and not of shape (batch, tokens, heads * size)")
    batch, tokens, width = x.shape
    if isinstance(width, int) and width % heads:
        raise InferenceError(f"{name} is {x}, and {width} is no multiple of {heads} heads")
    return batch, tokens, width // heads if isinstance(width, int) else None


@layer()
def LinearAttention(
    query: PartialTensor,
    key: PartialTensor,
    value: PartialTensor,
    past_state: PartialTensor | None = None,
    decay: PartialTensor | None = None,
    beta: PartialTensor | None = None,
    *,
    q_num_heads: int,
    kv_num_heads: int,
    chunk_size: int = 64,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[PartialTensor, PartialTensor]:
    if update_rule not in _RULES:
        raise InferenceError(f"update_rule {update_rule!r} is none of {', '.join(_RULES)}")
    if (decay is not None, beta is not None) != _RULES[update_rule]:
        wanted = [name for name, needed in zip(("decay", "beta"), _RULES[update_rule], strict=True) if needed]
        raise InferenceError(f"the rule {update_rule!r} takes {' and '.join(wanted) or 'neither decay nor beta'}")
    if q_num_heads < 1 or kv_num_heads < 1 or q_num_heads % kv_num_heads:
        raise InferenceError(f"{q_num_heads} query heads are no multiple of {kv_num_heads} heads")
    batch, tokens, size = _packed(query, q_num_heads, "query")
    _, _, key_size = _packed(key, kv_num_heads, "key")
    _, _, value_size = _packed(value, kv_num_heads, "value")
    if size is not None and key_size is not None and size != key_size:
        raise InferenceError(f"heads of {size} in the query {query} do not fit those of {key_size} in the key {key}")
    width = q_num_heads * value_size if isinstance(value_size, int) else None
    keys = size if size is not None else key_size
    state = (batch, kv_num_heads, keys, value_size)
    return query.with_shape((batch, tokens, width)), (past_state or query).with_shape(state)


@LinearAttention.form
def _linear(
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    q_num_heads: int,
    kv_num_heads: int,
    chunk_size: int,
    scale: float,
    update_rule: str,
) -> LinearState:
    query, _, value, _, decay, beta = (*inputs, *(None,) * 3)[:6]
    keys, values = query.shape[2] // q_num_heads, value.shape[2] // kv_num_heads
    decays = 0 if decay is None else decay.shape[2]
    betas = 0 if beta is None else beta.shape[2]
    if decays not in (0, kv_num_heads, kv_num_heads * keys) or betas not in (0, 1, kv_num_heads):
        raise InferenceError(f"decays of {decays} or betas of {betas} do not fit {kv_num_heads} heads of {keys}")
    return LinearState(
        query.shape[0],
        query.shape[1],
        q_num_heads,
        kv_num_heads,
        keys,
        values,
        scale or 1 / math.sqrt(keys),
        _RULES[update_rule][1],
        decays,
        betas,
    )
