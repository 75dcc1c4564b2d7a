"""Adapters of com.microsoft: attention with the keys of all tokens, and rotary embeddings of positions."""

from __future__ import annotations

import math

import numpy as np

from perframe.importers.adapters import adapter
from perframe.importers.adapters.chain import Chain
from perframe.importers.adapters.contrib import MICROSOFT
from perframe.importers.onnx_node import Node, constant
from perframe.ir import Value
from perframe.tensor import DataType

LOWEST = -3.4e38  # the score of a key that must not be read
MASKED = -10000.0  # added to the score of a masked key, unless the node gives another number


def rotate(
    chain: Chain,
    x: Value | None,
    positions: Value | None,
    tables: tuple[Value | None, Value | None],
    interleaved: bool,
    rest: int,
) -> Value:
    """Rotate x of (batch, tokens, heads, size) by the tokens' positions, but not the last `rest` numbers of a head."""
    half = chain.size(tables[0], 1)
    still: Value | None = None
    if rest:
        x, still = chain.several(2, "Split", x, chain.ints(2 * half, rest), axis=-1)
    angles = [chain("Unsqueeze", chain("Gather", table, positions), chain.ints(2)) for table in tables]
    result = chain("RotatePairs", x, *angles, interleaved=int(interleaved))
    return chain("Concat", result, still, axis=-1) if still else result


def count(chain: Chain, x: Value | None, axis: int, start: Value | None = None) -> Value:
    """Add nodes for start, start + 1, …, one number for each element of a dim of x. `start` is 0 if absent."""
    zero, one = (constant(value, np.int64) for value in (0, 1))
    numbers = chain("Range", zero, chain.dims(x, axis), one)
    return chain("Add", numbers, start) if start else numbers


@adapter(f"{MICROSOFT}RotaryEmbedding")
def _rotary(node: Node) -> list[Node]:
    """The input is (batch, tokens, heads * size) or (batch, heads, tokens, size)."""
    chain = Chain(node)
    x, positions, cos, sin = chain.inputs(4)
    chain.refuse("is_packed_batching")
    if chain.get("scale", 1.0) != 1.0:
        raise NotImplementedError(f"scale={chain.get('scale', 1.0)} is not supported")
    rank, heads, turning = chain.rank(x), chain.get("num_heads", 0), 2 * chain.size(cos, 1)
    width = chain.size(x, -1)
    size = width if rank == 4 else width // heads if heads else turning
    if rank == 4:
        wide = chain("Transpose", x, perm=(0, 2, 1, 3))
    else:
        wide = chain("Reshape", x, chain.ints(0, 0, width // size, size))
    if chain.rank(positions) == 1:  # the position of the first token
        positions = chain("Unsqueeze", count(chain, wide, 1, positions), chain.ints(0))
    result = rotate(chain, wide, positions, (cos, sin), bool(chain.get("interleaved", 0)), size - turning)
    if rank == 4:
        return chain.done(chain("Transpose", result, perm=(0, 2, 1, 3)))
    return chain.done(chain("Reshape", result, chain.ints(0, 0, width)))


def heads_first(chain: Chain, x: Value | None, heads: int, size: int) -> Value:
    """Turn (batch, tokens, heads * size) into (batch, heads, tokens, size)."""
    return chain("Transpose", chain("Reshape", x, chain.ints(0, 0, heads, size)), perm=(0, 2, 1, 3))


def heads_last(chain: Chain, x: Value | None, width: int) -> Value:
    """Turn (batch, heads, tokens, size) into (batch, tokens, heads * size)."""
    return chain("Reshape", chain("Transpose", x, perm=(0, 2, 1, 3)), chain.ints(0, 0, width))


def causal(chain: Chain, scores: Value | None, keys: Value | None, queries: Value | None) -> Value:
    """Give keys that come after a query the lowest score. The last query has the position of the last key."""
    last = chain("Sub", chain.dims(keys, 2), chain.dims(queries, 2))
    rows = chain("Unsqueeze", count(chain, queries, 2, last), chain.ints(1))
    return chain("Where", chain("LessOrEqual", count(chain, keys, 2), rows), scores, lowest(chain))


def lowest(chain: Chain) -> Value:
    """Return the score of a key that must not be read, in the dtype of the node."""
    dtype = chain.spec(chain.node.inputs[0]).dtype.numpy
    return constant(LOWEST if dtype != np.float16 else -65504.0, dtype)


def scored(chain: Chain, query: Value | None, key: Value | None, size: int, scale: float) -> Value:
    """Multiply queries by keys, and by the scale."""
    factor = chain.number(scale or 1 / math.sqrt(size), chain.node.inputs[0])
    return chain("MatMul", chain("Mul", query, factor), chain("Transpose", key, perm=(0, 1, 3, 2)))


def _mask(chain: Chain, mask: Value | None, keys: Value | None, value: float) -> Value:
    """Return the numbers that a mask adds to the scores.

    The mask has the end of each line, ends and beginnings, or a number for each key: 0 masks the key.
    """
    rank, like = chain.rank(mask), chain.node.inputs[0]
    positions = count(chain, keys, 2)
    if rank == 1:
        batch, given = chain.size(like, 0), chain.size(mask, 0)
        whole = chain("Cast", mask, to=DataType.INT64)
        if given not in (batch, 2 * batch):
            raise NotImplementedError(f"its mask of {given} numbers for {batch} lines is not supported")
        column = chain.ints(-1, 1, 1, 1)
        parts = chain.several(2, "Split", whole, axis=0, num_outputs=2) if given == 2 * batch else [whole]
        kept = chain("Less", positions, chain("Reshape", parts[0], column))
        if len(parts) == 2:
            kept = chain("And", kept, chain("GreaterOrEqual", positions, chain("Reshape", parts[1], column)))
    elif rank in (2, 3):
        spread = chain("Unsqueeze", mask, chain.ints(*((1, 2) if rank == 2 else (1,))))
        kept = chain("Cast", spread, to=DataType.BOOL)
    else:
        raise NotImplementedError(f"its mask of {rank} dims is not supported")
    return chain("Where", kept, chain.number(0, like), chain.number(value, like))


def _attended(
    chain: Chain, query: Value | None, key: Value | None, value: Value | None, size: int, added: list[Value | None]
) -> tuple[Value | None, Value | None]:
    """Return the values weighed by their keys' scores, for each head, and the scores. `added` are masks and biases."""
    scores = chain.sum(scored(chain, query, key, size, chain.get("scale", 0.0)), *added)
    if chain.get("unidirectional", 0):
        scores = causal(chain, scores, key, query)
    return chain("MatMul", chain("Softmax", scores, axis=-1), value), scores


@adapter(f"{MICROSOFT}MultiHeadAttention")
def _multi_head(node: Node) -> list[Node]:
    """Keys and values may share one tensor with the queries, share one with each other, or come apart, with their heads
    split or not.
    """
    chain = Chain(node)
    query, key, value, bias, padding, added, past_key, past_value, length, beams = chain.inputs(10)
    if length or beams:
        raise NotImplementedError("past_sequence_length and cache_indirection are not supported")
    heads = node.attributes["num_heads"]
    packed = chain.rank(query) == 5
    size = chain.size(query, -1) if packed else chain.size(query, 2) // heads
    if packed:
        parts = [_taken(chain, query, index) for index in range(3)]
    elif chain.rank(key) == 5:
        parts = [heads_first(chain, query, heads, size), *(_taken(chain, key, index) for index in range(2))]
    else:
        sizes = [size, size, 0]
        split = chain.rank(value) == 4
        sizes[2] = chain.size(value, 3) if split else chain.size(value, 2) // heads
        given = zip((query, key, value), sizes, (False, split, split), strict=True)
        parts = [x if done and x else heads_first(chain, x, heads, n) for x, n, done in given]
    last = chain.size(value, -1) // (1 if chain.rank(value) == 4 else heads) if value else size
    if bias:
        pieces = chain.several(3, "Split", bias, chain.ints(heads * size, heads * size, heads * last), axis=0)
        rows = [
            chain("Reshape", piece, chain.ints(heads, 1, n))
            for piece, n in zip(pieces, (size, size, last), strict=True)
        ]
        crossing = bool(value) and chain.rank(value) == 4
        parts = [part if crossing and i else chain("Add", part, rows[i]) for i, part in enumerate(parts)]
    query, key, value = parts
    if past_key:
        key = chain("Concat", past_key, key, axis=2)
        value = chain("Concat", past_value, value, axis=2)
    masks = [_mask(chain, padding, key, chain.get("mask_filter_value", MASKED))] if padding else []
    result, scores = _attended(chain, query, key, value, size, [*masks, added])
    return chain.done(heads_last(chain, result, heads * last), key, value, scores)


def _taken(chain: Chain, packed: Value | None, index: int) -> Value:
    """Take one of the tensors in (batch, tokens, heads, tensors, size), as (batch, heads, tokens, size)."""
    return chain("Transpose", chain("Gather", packed, constant(index, np.int64), axis=3), perm=(0, 2, 1, 3))


@adapter(f"{MICROSOFT}Attention")
def _attention(node: Node) -> list[Node]:
    """Attention with the product that makes queries, keys and values from one input."""
    chain = Chain(node)
    chain.refuse("do_rotary", "past_present_share_buffer")
    x, weights, bias, mask, past, added, length = chain.inputs(7)
    if length:
        raise NotImplementedError("past_sequence_length is not supported")
    heads, total = node.attributes["num_heads"], chain.size(weights, 1)
    widths = chain.get("qkv_hidden_sizes", None) or (total // 3,) * 3
    product = chain.sum(chain("MatMul", x, weights), bias)
    parts = chain.several(3, "Split", product, chain.ints(*widths), axis=-1)
    query, key, value = (heads_first(chain, p, heads, w // heads) for p, w in zip(parts, widths, strict=True))
    if past:
        before = chain.several(2, "Split", past, axis=0, num_outputs=2)
        first = chain.ints(0)
        key, value = (
            chain("Concat", chain("Squeeze", old, first), new, axis=2)
            for old, new in zip(before, (key, value), strict=True)
        )
    masks = [_mask(chain, mask, key, chain.get("mask_filter_value", MASKED))] if mask else []
    result, _ = _attended(chain, query, key, value, widths[0] // heads, [*masks, added])
    present = None
    if chain.wants(1):
        present = chain("Concat", *(chain("Unsqueeze", part, chain.ints(0)) for part in (key, value)), axis=0)
    return chain.done(heads_last(chain, result, widths[2]), present)


@adapter(f"{MICROSOFT}CausalConvWithState")
def _causal_conv(node: Node) -> list[Node]:
    """Each channel of (batch, channels, tokens) by itself; the state is the end of what came before."""
    chain = Chain(node)
    x, weight, bias, past = chain.inputs(4)
    chain.refuse("state_window")
    if chain.get("ndim", 1) != 1:
        raise NotImplementedError(f"ndim={chain.get('ndim', 1)} is not supported")
    channels, before = chain.size(weight, 0), chain.size(weight, 2) - 1
    if past is None:
        sizes = chain("Concat", chain("Shape", x, start=0, end=2), chain.ints(before), axis=0)
        past = chain("Expand", chain.number(0, x), sizes)
    joined = chain("Concat", past, x, axis=2)
    result = chain("Conv", joined, weight, *([bias] if bias else []), group=channels)
    if chain.get("activation", "none") != "none":
        result = chain("Mul", result, chain("Sigmoid", result))
    count = chain.dims(x, 2)
    end = chain("Slice", joined, chain("Reshape", count, chain.ints(1)), chain.ints(1 << 62), chain.ints(2))
    return chain.done(result, end)


@adapter(f"{MICROSOFT}LinearAttention")
def _linear(node: Node) -> list[Node]:
    """As in ONNX."""
    chain = Chain(node)
    return chain.done(*chain.several(2, "LinearAttention", *node.inputs, **node.attributes))
