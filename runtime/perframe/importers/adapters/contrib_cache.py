"""Adapters of com.microsoft: attention over a cache of keys and values. Several query heads share one cached head."""

from __future__ import annotations

import math

from perframe.importers.adapters import adapter
from perframe.importers.adapters.chain import Chain
from perframe.importers.adapters.contrib import MICROSOFT
from perframe.importers.adapters.contrib_attention import heads_last, lowest, rotate
from perframe.importers.adapters.contrib_window import WindowedCache, count, number, size
from perframe.importers.onnx_node import Node
from perframe.ir import Value
from perframe.tensor import DataType


@adapter(f"{MICROSOFT}GroupQueryAttention")
def _group_query(node: Node) -> list[Node]:
    chain = Chain(node)
    given = chain.inputs(16)
    _refuse(chain, given)
    query, key, value, past_key, past_value, lengths = given[:6]
    cos, sin, positions, added = given[7:11]
    heads, groups = node.attributes["num_heads"], node.attributes["kv_num_heads"]
    width = chain.size(query, 2)
    head = width // heads if key else width // (heads + 2 * groups)
    if not key:
        sizes = chain.ints(heads * head, groups * head, groups * head)
        query, key, value = chain.several(3, "Split", query, sizes, axis=-1)
    parts = [
        chain("Reshape", x, chain.ints(0, 0, n, head))
        for x, n in zip((query, key, value), (heads, groups, groups), strict=True)
    ]
    for index, weight in enumerate(given[14:16]):
        if weight:
            epsilon = chain.get("qk_norm_epsilon", 1e-6)
            parts[index] = chain("RMSNormalization", parts[index], weight, axis=-1, epsilon=epsilon)

    ends = chain("Reshape", lengths, chain.ints(-1))  # the position of the last key of each line
    tokens = size(chain, query, 1)
    before = chain("Sub", ends, chain("Sub", tokens, number(1)))
    before = chain("Max", before, number(0))  # the number of cached keys; 0 before the first call
    rows = chain("Add", chain("Unsqueeze", before, chain.ints(1)), count(chain, tokens))
    if chain.get("do_rotary", 0):
        interleaved, rest = bool(chain.get("rotary_interleaved", 0)), head - 2 * chain.size(cos, 1)
        parts[:2] = [rotate(chain, part, positions or rows, (cos, sin), interleaved, rest) for part in parts[:2]]
    queries, keys, values = (chain("Transpose", part, perm=(0, 2, 1, 3)) for part in parts)
    cached: tuple[Value, Value] | None = None
    columns: Value | None = None
    if past_key and past_value and chain.get("sliding_window_cache", 0):
        window = WindowedCache(chain, past_key, keys, before, chain("Add", ends, number(1)))
        keys, values = (window.joined(old, new) for old, new in ((past_key, keys), (past_value, values)))
        cached = window.next(keys), window.next(values)
        columns = chain("Unsqueeze", window.positions, chain.ints(1, 2, 3))
    elif past_key:
        keys = _appended(chain, past_key, keys, before, given[6])
        values = _appended(chain, past_value, values, before, given[6])

    factor = chain.number(chain.get("scale", 0.0) or 1 / math.sqrt(head), node.inputs[0])
    queries = chain("Reshape", chain("Mul", queries, factor), chain.ints(0, groups, heads // groups, -1, head))
    turned = chain("Transpose", chain("Unsqueeze", keys, chain.ints(2)), perm=(0, 1, 2, 4, 3))
    scores = chain("MatMul", queries, turned)  # batch, heads of keys, queries' heads of each, tokens, keys
    if chain.get("softcap", 0.0):
        most = chain.number(chain.get("softcap", 0.0), node.inputs[0])
        scores = chain("Mul", chain("Tanh", chain("Div", scores, most)), most)
    if added:
        scores = chain("Add", scores, _by_group(chain, added, heads, groups))
    columns = columns or count(chain, size(chain, keys, 2))
    scores = chain("Where", _visible(chain, columns, rows, ends), scores, lowest(chain))
    weights = _softmax(chain, scores, given[11], heads, groups)
    result = chain("MatMul", weights, chain("Unsqueeze", values, chain.ints(2)))
    result = chain("Reshape", result, chain.ints(0, heads, -1, head))
    return chain.done(heads_last(chain, result, heads * head), *(cached or (keys, values)))


def _refuse(chain: Chain, given: list[Value | None]) -> None:
    chain.refuse("kv_cache_bit_width", "qk_output")
    is_plain = chain.get("local_window_size", -1) > 0 and chain.get("causal", 1) and not given[10]
    if chain.get("sliding_window_cache", 0) and not is_plain:
        raise NotImplementedError("sliding_window_cache needs a local_window_size, causal=1 and no attention_bias")
    for name in ("k_quant_type", "v_quant_type"):
        if chain.get(name, "NONE") != "NONE":
            raise NotImplementedError(f"{name}={chain.get(name, '')!r} is not supported")
    for name, value in zip(("k_scale", "v_scale"), given[12:14], strict=True):
        if value:
            raise NotImplementedError(f"the input {name} is not supported")


def _appended(chain: Chain, past: Value | None, new: Value, before: Value | None, total: Value | None) -> Value:
    """Extend the cache to the total length, and write the new rows after the old ones."""
    shape = chain.spec(past).shape
    if shape is not None and shape[2] == 0:
        return new
    one = chain.ints(-1)
    wanted = chain("Reshape", chain("Cast", total, to=DataType.INT64), one)
    missing = chain("Max", chain("Sub", wanted, chain("Shape", past, start=2, end=3)), chain.ints(0))
    longer = chain("Pad", past, chain("Concat", chain.ints(0), missing, axis=0), None, chain.ints(2))
    return chain("TensorScatter", longer, new, before, axis=2)


def _by_group(chain: Chain, added: Value | None, heads: int, groups: int) -> Value:
    """Reshape a bias of (batch, heads, tokens, keys) so that its heads are in groups."""
    if chain.size(added, 1) == 1:
        return chain("Unsqueeze", added, chain.ints(1))
    tokens = chain("Shape", added, start=2, end=3)
    shape = chain("Concat", chain.ints(0, groups, heads // groups), tokens, chain.ints(-1), axis=0)
    return chain("Reshape", added, shape)


def _visible(chain: Chain, columns: Value | None, rows: Value | None, ends: Value | None) -> Value:
    """Return whether a query may read a key: (batch, 1, 1, tokens, keys). `columns` are the positions of the keys."""
    at = chain("Unsqueeze", rows, chain.ints(1, 2, 4))
    kept = chain("LessOrEqual", columns, at)
    if not chain.get("causal", 1):
        kept = chain("LessOrEqual", columns, chain("Reshape", ends, chain.ints(-1, 1, 1, 1, 1)))
    window = chain.get("local_window_size", -1)
    if window < 0:
        return kept
    first = chain("Sub", at, number(window))
    return chain("And", kept, chain("Greater", columns, first))


def _softmax(chain: Chain, scores: Value | None, sink: Value | None, heads: int, groups: int) -> Value:
    """Apply the softmax; if the node asks for it, with a further key that has no value.

    The score of that key is 0, or the one that `sink` gives its head.
    """
    if not sink and chain.get("smooth_softmax", 0) <= 0:
        return chain("Softmax", scores, axis=-1)
    like = chain.node.inputs[0]
    zeros = chain("Mul", chain("ReduceMax", scores, chain.ints(-1)), chain.number(0, like))
    level = chain("Reshape", sink, chain.ints(groups, heads // groups, 1, 1)) if sink else None
    whole = chain("Softmax", chain("Concat", scores, chain.sum(zeros, level), axis=-1), axis=-1)
    return chain("Slice", whole, chain.ints(0), chain.ints(-1), chain.ints(-1))
