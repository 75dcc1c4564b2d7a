"""Blocks of rarer layers: products of bytes, other float types, other domains, shapes that depend on data."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from fuzz.random_graphs.drawing import FLOAT, Drawing, Refused, info
from fuzz.random_graphs.families import Block, moderate

MICROSOFT = "com.microsoft"


# weights have 7 bits: with 8, sums of pairs in onnxruntime saturate on machines without VNNI
def byte_products(g: Drawing) -> Any:
    """Products of bytes, whose sums are int32, with a scale or without."""
    x = moderate(g, g.fresh(2, 3, 4))
    q, scale, zero = g("DynamicQuantizeLinear", x, count=3)
    if g.rank(x) == 4 and g.chance(0.5):
        channels = g.shape(x)[1]
        w = g.constant(g.rng.integers(-60, 60, (g.one(1, 4, 8), channels, 1, 1)), np.int8)
        y = g("ConvInteger", q, w, zero)
    else:
        w = g.constant(g.rng.integers(-60, 60, (g.shape(x)[-1], g.one(1, 4, 8))), np.int8)
        more = [g.constant(g.int(-3, 3), np.int8)] if g.chance(0.5) else []
        y = g("MatMulInteger", q, w, zero, *more)
    return g("Mul", g("Cast", y, to=TensorProto.FLOAT), scale if g.chance(0.7) else g.plain(0.01))


def linear_operators(g: Drawing) -> Any:
    """QLinearConv and QLinearMatMul."""
    x = moderate(g, g.fresh(2, 4))
    scale, zero = g.plain(0.0513), g.constant(g.one(0, 120), np.uint8)
    out, made = g.plain(0.11), g.constant(g.one(3, 128), np.uint8)
    q = g("QuantizeLinear", x, scale, zero)
    if g.rank(x) == 4:
        count, size = g.one(1, 4, 8), g.one(1, 3)
        w = g.constant(g.rng.integers(-60, 60, (count, g.shape(x)[1], size, size)), np.int8)
        bias = [g.constant(g.rng.integers(-999, 999, count), np.int32)] if g.chance(0.5) else []
        whole = g.constant(0, np.int8)
        y = g("QLinearConv", q, scale, zero, w, g.plain(0.0217), whole, out, made, *bias, pads=[size // 2] * 4)
    else:
        w = g.constant(g.rng.integers(-60, 60, (g.shape(x)[1], g.one(1, 4, 8))), np.int8)
        y = g("QLinearMatMul", q, scale, zero, w, g.plain(0.0217), g.constant(0, np.int8), out, made)
    return g("DequantizeLinear", y, out, made)


def foreign(g: Drawing) -> Any:
    """Operators of onnxruntime's own domain."""
    x = moderate(g, g.fresh(3))
    width, kind = g.shape(x)[2], g.int(0, 4)
    if kind == 0:
        return g("FastGelu" if g.chance(0.5) else "Gelu", x, domain=MICROSOFT)
    if kind == 1:
        return g("BiasGelu", x, g.weights(width), domain=MICROSOFT)
    if kind == 2:
        skip = g("Neg", x) if g.chance(0.5) else x
        return g("SkipLayerNormalization", x, skip, g.weights(width), g.weights(width), domain=MICROSOFT, epsilon=1e-5)
    if kind == 3:
        return g("QuickGelu", x, domain=MICROSOFT, alpha=g.one(1.702, 1.0))
    return g("FusedMatMul", x, g.weights(width, g.int(1, 4)), domain=MICROSOFT, alpha=g.one(1.0, 0.5))


def new_norms(g: Drawing) -> Any:
    """Normalizations of groups, and of the mean of squares."""
    x = moderate(g, g.fresh(4))
    channels = g.shape(x)[1]
    if g.opset >= 21:
        groups = g.one(*[d for d in range(1, channels + 1) if channels % d == 0])
        return g("GroupNormalization", x, g.weights(channels), g.weights(channels), num_groups=groups)
    return g("MeanVarianceNormalization", x, axes=g.one([0, 2, 3], [2, 3], [1]))


def other_floats(g: Drawing) -> Any:
    """A few layers in float64 or float16, which passes for float32 must leave alone."""
    x = moderate(g, g.fresh(2, 3, 4))
    kind, dtype = g.one(
        (TensorProto.DOUBLE, np.float64), (TensorProto.DOUBLE, np.float64), (TensorProto.FLOAT16, np.float16)
    )
    y = g("Cast", x, to=kind)
    for _ in range(g.int(1, 3)):
        op = g.one("Mul", "Add", "MatMul", "Relu", "Tanh", "Transpose", "ReduceMax", "Softmax")
        if op in ("Mul", "Add"):
            shape = g.one((), (1,), g.shape(y)[-1:], g.shape(y))
            y = g(op, y, g.constant(g.rng.normal(size=shape), dtype))
        elif op == "MatMul" and dtype == np.float64:
            y = g(op, y, g.constant(g.rng.normal(size=(g.shape(y)[-1], g.int(1, 4))), dtype))
        elif op == "ReduceMax":
            y = g(op, y, keepdims=1)
        elif op != "MatMul":
            y = g(op, y)
    return g("Cast", y, to=TensorProto.FLOAT)


def counted(g: Drawing) -> Any:
    """Shapes that depend on data: places of what is not 0, and what a condition keeps."""
    x = moderate(g, g.floats(1, 2, 3))
    if g.chance(0.5):
        places = g("NonZero", g("Greater", x, g.plain(0.0)))
        return g("Cast", g("Transpose", places, perm=[1, 0]), to=TensorProto.FLOAT)
    keep = g.constant(g.rng.random(g.shape(x)[0]) < 0.6)
    y = g("Compress", x, keep, axis=0)
    return g("Relu", y)


def scan(g: Drawing) -> Any:
    """A scan with one state."""
    x = g.fresh(2, 3)
    state = g.input(g.normal(*g.shape(x)[1:]))
    one, row, made, out = (g.name("s") for _ in range(4))
    nodes = [
        helper.make_node(g.one("Add", "Max", "Mul"), [one, row], [made], g.name("n")),
        helper.make_node(g.one("Relu", "Neg", "Identity"), [made], [out], g.name("n")),
    ]
    array = g.values[state]
    dims = [None] * array.ndim
    body = helper.make_graph(
        nodes,
        g.name("body"),
        [info(one, array, dims), info(row, array, dims)],
        [info(made, array, dims), info(out, array, dims)],
    )
    return g("Scan", state, x, count=2, body=body, num_scan_inputs=1)


def rest(g: Drawing) -> Any:
    """Layers of which most models have none."""
    kind = g.int(0, 6)
    if kind == 0:
        x = moderate(g, g.fresh(4))
        grid = g.input(g.rng.uniform(-1, 1, (g.shape(x)[0], g.int(1, 4), g.int(1, 4), 2)).astype(FLOAT))
        mode = "bilinear" if g.opset < 20 else "linear"
        return g("GridSample", x, grid, mode=g.one(mode, "nearest"), align_corners=g.int(0, 1))
    if kind == 1:
        x = g.fresh(3)
        lengths = g.constant(g.rng.integers(1, g.shape(x)[0] + 1, g.shape(x)[1]), np.int64)
        return g("ReverseSequence", x, lengths, time_axis=0, batch_axis=1)
    if kind == 2:
        return g("EyeLike", g.floats(2), k=g.int(-1, 1))
    if kind == 3:
        x = moderate(g, g.fresh(2))
        return g("Det", g("MatMul", x, g("Transpose", x, perm=[1, 0])))
    if kind == 4:
        x = g.fresh(4)
        return g("DepthToSpace", g("Concat", x, x, x, x, axis=1), blocksize=2)
    if kind == 5:
        x = moderate(g, g.fresh(4))
        if g.shape(x)[3] < 2:
            raise Refused
        values, places = g("MaxPool", x, count=2, kernel_shape=[1, 2], strides=[1, 2])
        return g("Cast", places, to=TensorProto.FLOAT) if g.chance(0.5) else values
    x = moderate(g, g.fresh(2, 3))
    values, places = g("TopK", x, g.ints(g.int(1, g.shape(x)[-1])), count=2)
    return g("GatherElements", x, places, axis=-1) if g.chance(0.5) else g("Neg", values)


def cached_attention(g: Drawing) -> Any:
    """Attention with a cache that gets new rows. Its new length follows from shapes, or is a number."""
    if g.special:  # onnxruntime skips what a window hides, and 0 * NaN is NaN
        raise Refused
    (heads, groups), size = g.one((2, 1), (4, 2), (2, 2)), g.one(8, 16)
    past, tokens = g.one(1, 3, 4), g.one(1, 2, 5)
    x = g.input(g.normal(1, tokens, 4))  # heads have a fixed size
    q, k, v = (g("MatMul", x, g.constant(g.normal(4, count * size))) for count in (heads, groups, groups))
    caches = [g.input(g.normal(1, groups, past, size)) for _ in "kv"]
    if g.chance(0.7):
        rows, new = (g("Gather", g("Shape", x), g.ints(at)) for x, at in ((caches[0], 2), (q, 1)))
        total = g("Add", rows, new)
    else:
        total = g.ints(past + tokens)
    last = g("Cast", g("Sub", total, g.ints(1)), to=TensorProto.INT32)
    whole = g("Reshape", g("Cast", total, to=TensorProto.INT32), g.ints())
    settings = {"num_heads": heads, "kv_num_heads": groups, "local_window_size": g.one(-1, -1, 2)}
    given = [q, k, v, *caches, last, whole]
    y, keys, _ = g("GroupQueryAttention", *given, count=3, domain=MICROSOFT, **settings)
    return g("ReduceSum", keys, g.ints(2)) if g.chance(0.2) else y


RARE: tuple[Block, ...] = (
    *(byte_products, linear_operators, foreign, new_norms, other_floats, other_floats, counted, scan, rest, rest),
    *(cached_attention, cached_attention),
)
