"""Adapters of com.microsoft: normalizations, with the sums before them."""

from __future__ import annotations

import numpy as np

from perframe.importers.adapters import adapter
from perframe.importers.adapters.chain import Chain
from perframe.importers.adapters.contrib import MICROSOFT, channels_first, channels_last
from perframe.importers.onnx_node import Node, constant
from perframe.ir import Value
from perframe.tensor import DataType


@adapter(f"{MICROSOFT}LayerNormalization")
def _layer_normalization(node: Node) -> list[Node]:
    return [node.like("LayerNormalization", node.inputs, node.outputs, **node.attributes)]


@adapter("SimplifiedLayerNormalization", f"{MICROSOFT}SimplifiedLayerNormalization")
def _simplified(node: Node) -> list[Node]:
    chain = Chain(node)
    x, scale = chain.inputs(2)
    axis, epsilon = chain.get("axis", -1), chain.get("epsilon", 1e-5)
    result = chain("RMSNormalization", x, scale, axis=axis, epsilon=epsilon, stash_type=chain.get("stash_type", 1))
    deviation = None
    if chain.wants(1):
        axes = chain.ints(*range(axis % chain.rank(x), chain.rank(x)))
        deviation = _inverse_rms(chain, chain("Cast", x, to=DataType.FLOAT32), axes, epsilon)
    return chain.done(result, deviation)


def _inverse_rms(chain: Chain, x: Value | None, axes: Value | None, epsilon: float) -> Value:
    """Add nodes for 1 / sqrt(mean(x²) + epsilon)."""
    mean = chain("ReduceMean", chain("Mul", x, x), axes)
    return chain("Reciprocal", chain("Sqrt", chain("Add", mean, chain.number(epsilon))))


@adapter(f"{MICROSOFT}SkipLayerNormalization")
def _skip(node: Node) -> list[Node]:
    chain = Chain(node)
    x, skip, gamma, beta, bias = chain.inputs(5)
    total = chain.sum(x, skip, bias)
    scale = [gamma, beta] if beta else [gamma]
    epsilon = chain.get("epsilon", 1e-12)
    results = chain.several(3, "LayerNormalization", total, *scale, axis=-1, epsilon=epsilon, stash_type=1)
    return chain.done(*results, total)


@adapter(f"{MICROSOFT}SkipSimplifiedLayerNormalization")
def _skip_simplified(node: Node) -> list[Node]:
    chain = Chain(node)
    x, skip, gamma, bias = chain.inputs(4)
    total, epsilon = chain.sum(x, skip, bias), chain.get("epsilon", 1e-12)
    result = chain("RMSNormalization", total, gamma, axis=-1, epsilon=epsilon, stash_type=1)
    deviation = _inverse_rms(chain, chain("Cast", total, to=DataType.FLOAT32), chain.ints(-1), epsilon)
    return chain.done(result, None, deviation, total)


@adapter(f"{MICROSOFT}EmbedLayerNormalization")
def _embed(node: Node) -> list[Node]:
    """Sum up and normalize the embeddings of words, positions and segments. The second output is the number of tokens
    in each line without padding.
    """
    chain = Chain(node)
    ids, segments, words, positions, kinds, gamma, beta, mask, position_ids = chain.inputs(9)
    if not position_ids:
        zero, one = (constant(value, np.int64) for value in (0, 1))
        position_ids = chain("Range", zero, chain.dims(ids, 1), one)
    segment = chain("Gather", kinds, segments) if segments else None
    total = chain.sum(chain("Gather", words, ids), chain("Gather", positions, position_ids), segment)
    epsilon = chain.get("epsilon", 1e-12)
    result = chain("LayerNormalization", total, gamma, beta, axis=-1, epsilon=epsilon, stash_type=1)
    if mask:
        count = chain("ReduceSum", chain("Cast", mask, to=DataType.INT32), chain.ints(1), keepdims=0)
    else:
        count = chain("ConstantOfShape", chain("Shape", ids, start=0, end=1), value=np.zeros(1, np.int32))
    return chain.done(result, count, total)


@adapter(f"{MICROSOFT}GroupNorm", f"{MICROSOFT}SkipGroupNorm")
def _group_norm(node: Node) -> list[Node]:
    """Computed in float32. By default the channels of pictures come last. activation=1 is SiLU."""
    chain = Chain(node)
    x, gamma, beta, skip, bias = chain.inputs(5)
    last, rank = chain.get("channels_last", 1), chain.rank(x)
    if skip and chain.rank(skip) == 2:
        skip = chain("Unsqueeze", skip, chain.ints(*(range(1, rank - 1) if last else range(2, rank))))
    if bias and not last:
        bias = chain("Reshape", bias, chain.ints(-1, *(1,) * (rank - 2)))
    total = chain.sum(x, skip, bias)
    result = chain("Cast", total, to=DataType.FLOAT32)
    result = channels_first(chain, result, rank) if last else result
    scale = [chain("Cast", name, to=DataType.FLOAT32) for name in (gamma, beta)]
    epsilon, groups = chain.get("epsilon", 1e-5), chain.get("groups", 1)
    result = chain("GroupNormalization", result, *scale, epsilon=epsilon, num_groups=groups, stash_type=1)
    result = channels_last(chain, result, rank) if last else result
    result = chain("Swish", result) if chain.get("activation", 0) else result
    return chain.done(chain("Cast", result, to=chain.spec(x).dtype), total)
