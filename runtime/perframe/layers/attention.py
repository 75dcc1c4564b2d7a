"""Attention over the keys of all tokens, and linear attention: each token changes a state of fixed size.

The state is one matrix for each head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import floordiv
from typing import Any, Literal

from perframe.errors import InferenceError
from perframe.ir.arrangement import Arrangement, Steps, cut_alike
from perframe.ir.attributes import Positive
from perframe.ir.declaration import Known, layer
from perframe.ir.form import Counted
from perframe.ir.geometry import Ints, View, row_major
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor, broadcast, derived, dim_product
from perframe.ir.sizes.size import specialized
from perframe.safety.records import dataclass
from perframe.tensor import DataType

_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


@dataclass(frozen=True)
class LinearState:
    """For each token the state becomes S = exp(decay) * S + k ⊗ v', and the output is scale * q S.

    v' is v; with `delta` it is beta * (v - k S), where S has decayed already. q has `query_heads` heads, and all other
    operands have `heads`: `query_heads // heads` query heads read each of them. `decays` and `betas` are the last dims
    of the inputs decay and beta, or 0 for an absent input.
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
    """Return batch, tokens and the size of a head."""
    if x.shape is None:
        return None, None, None
    if len(x.shape) != 3:
        raise InferenceError(f"{name} is {x}, not of shape (batch, tokens, heads * size)")
    batch, tokens, width = x.shape
    if isinstance(width, int) and width % heads:
        raise InferenceError(f"{name} is {x}, and {width} is not a multiple of {heads} heads")
    return batch, tokens, derived(floordiv, width, heads)


@layer()
def LinearAttention(
    query: PartialTensor,
    key: PartialTensor,
    value: PartialTensor,
    past_state: PartialTensor | None = None,
    decay: PartialTensor | None = None,
    beta: PartialTensor | None = None,
    *,
    q_num_heads: Positive,
    kv_num_heads: Positive,
    chunk_size: Positive = 64,
    scale: float = 0.0,
    update_rule: Literal["linear", "gated", "delta", "gated_delta"] = "gated_delta",
) -> tuple[PartialTensor, PartialTensor]:
    if (decay is not None, beta is not None) != _RULES[update_rule]:
        wanted = [name for name, needed in zip(("decay", "beta"), _RULES[update_rule], strict=True) if needed]
        raise InferenceError(f"the rule {update_rule!r} takes {' and '.join(wanted) or 'neither decay nor beta'}")
    if q_num_heads % kv_num_heads:
        raise InferenceError(f"{q_num_heads} query heads are not a multiple of {kv_num_heads} heads")
    batch, tokens, size = _packed(query, q_num_heads, "query")
    _, _, key_size = _packed(key, kv_num_heads, "key")
    _, _, value_size = _packed(value, kv_num_heads, "value")
    if isinstance(size, int) and isinstance(key_size, int) and size != key_size:
        raise InferenceError(f"heads of {size} in the query {query} do not fit those of {key_size} in the key {key}")
    width = dim_product(q_num_heads, value_size)
    keys = size if isinstance(size, int) or key_size is None else key_size
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
        scale or 1 / math.sqrt(specialized(keys)),
        _RULES[update_rule][1],
        decays,
        betas,
    )


@dataclass(frozen=True)
class Attention(Counted):
    """For each head softmax(scale * q k + ...) v, with `rows` queries, `keys` keys of `size` numbers, and values of
    `columns` numbers.

    If softcap is not 0, it caps the scores: softcap * tanh(score / softcap). Then `added` is added to the scores, and
    `fill` replaces each score where `kept` is not `keeps`. The weights of rows in `dropped` are zeros. All operands are
    views of (batch..., row, column); the view of the keys is (batch..., size, keys).
    """

    batch: Ints
    rows: int
    keys: int
    size: int
    columns: int
    query: View
    key: View
    value: View
    added: View | None
    kept: View | None
    dropped: View | None
    out: Ints
    scale: float
    softcap: float
    fill: float
    keeps: int

    @property
    def operations(self) -> int:
        """Two for each product of two numbers: of queries and keys, and of weights and values."""
        return 2 * math.prod(self.batch) * self.rows * self.keys * (self.size + self.columns)


def _seen(value: Any, arrangement: Arrangement | None) -> tuple[Dim, ...]:
    return tuple(value.shape) if arrangement is None else arrangement.shape(value.shape)


@layer()
def DotProductAttention(
    query: PartialTensor,
    key: PartialTensor,
    value: PartialTensor,
    added: PartialTensor | None = None,
    kept: PartialTensor | None = None,
    dropped: PartialTensor | None = None,
    *,
    views: tuple[Arrangement, Arrangement, Arrangement] | None = None,
    perm: Ints = (),
    scale: float = 1.0,
    softcap: float = 0.0,
    fill: float = -math.inf,
    keeps: int = 1,
) -> PartialTensor:
    if query.shape is None or key.shape is None or value.shape is None:
        return query.with_shape(None)
    for mask in (kept, dropped):
        if mask is not None and mask.dtype is not DataType.BOOL:
            raise InferenceError(f"a mask must be bool, and is {mask}")
    q, k, v = (_seen(x, views[i] if views else None) for i, x in enumerate((query, key, value)))
    rank = len(q)
    if rank < 2 or len(k) != rank or len(v) != rank:
        raise InferenceError(f"{query}, {key} and {value} do not have the same rank")
    if isinstance(q[-1], int) and isinstance(k[-2], int) and q[-1] != k[-2]:
        raise InferenceError(f"queries of {q[-1]} numbers do not fit keys of {k[-2]}: {query}, {key}")
    masks = [DynamicTensorShape(x.shape) for x in (added, kept, dropped) if x is not None and x.shape is not None]
    batch = broadcast(DynamicTensorShape(q[:-2]), DynamicTensorShape(k[:-2])) or ()
    scores: Sequence[Dim] = broadcast(DynamicTensorShape((*batch, q[-2], k[-1])), *masks) or ()
    broadcast(DynamicTensorShape(scores[-1:]), DynamicTensorShape(v[-2:-1]))  # raises
    batch = broadcast(DynamicTensorShape(scores[:-2]), DynamicTensorShape(v[:-2])) or ()
    shape = (*batch, scores[-2], v[-1])
    return query.with_shape(shape[axis] for axis in perm) if perm else query.with_shape(shape)


@DotProductAttention.form
def _attention(
    inputs: Sequence[Known | None],
    outputs: Sequence[Known],
    *,
    views: tuple[Arrangement, Arrangement, Arrangement] | None,
    perm: Ints,
    scale: float,
    softcap: float,
    fill: float,
    keeps: int,
) -> Attention:
    rank = len(outputs[0].shape)
    own = views or (Arrangement.of(rank),) * 3
    seen = [None if x is None else (x.shape, own[i]) for i, x in enumerate(inputs[:3])]
    seen += [None if x is None else (x.shape, Arrangement.of(len(x.shape), rank)) for x in inputs[3:]]
    order, out, steps = perm or range(rank), row_major(outputs[0].shape), [Steps()] * rank
    for position, axis in enumerate(order):
        steps[axis] = [(outputs[0].shape[position], out[position])]
    walks = [arrangement.steps(shape) for shape, arrangement in filter(None, seen)]
    (shape, strides), *cut = cut_alike([steps, *walks])
    rest = iter(cut)
    operands = [None if one is None else View(*next(rest), one[1].offset(one[0])) for one in seen]
    query, key, value, added, kept, dropped = [*operands, None, None, None][:6]
    assert query is not None and key is not None and value is not None
    batch, rows, keys, columns = shape[:-2], shape[-2], value.shape[-2], shape[-1]
    for view, last in (
        (query, (rows, query.shape[-1])),
        (key, (key.shape[-2], keys)),
        (value, (keys, columns)),
        (added, (rows, keys)),
        (kept, (rows, keys)),
        (dropped, (rows, 1)),
    ):
        if view is not None and any([x not in (1, y) for x, y in zip(view.shape, (*batch, *last), strict=True)]):
            raise InferenceError(f"{view.shape} does not broadcast to {(*batch, *last)}")
    return Attention(
        batch,
        rows,
        keys,
        key.shape[-2],
        columns,
        *(query, key, value, added, kept, dropped, strides),
        *(scale, softcap, fill, keeps),
    )
