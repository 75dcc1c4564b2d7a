"""Blocks that passes look for, and near misses: another axis, a second reader, a guard, a broadcast, a range."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from fuzz.random_graphs.drawing import FLOAT, Drawing, Refused
from fuzz.random_graphs.families import Block, affine, convolution, moderate, other_for, product, reduce, tame, unary

GUARDS = (0.0, 1e-7, 1e-6, 1.9e-6, 1e-5, 1e-3)


def read_again(g: Drawing, name: str) -> None:
    """Now and then a second reader, whose presence forbids a fusion."""
    if g.chance(0.15):
        g(g.one("Neg", "Relu", "Identity"), name)


def function(g: Drawing) -> Any:
    """A function spelled out: Swish, Gelu, Mish, HardSwish, Softsign, and others that are almost one."""
    x = g.floats()
    kind = g.one("swish", "gelu", "tanh", "mish", "hard", "softsign", "softplus", "sigmoid", "quick")
    near = g.chance(0.4)
    if kind == "swish":
        return g("Mul", x, g("Sigmoid", g("Mul", x, g.scalar(g.one(1.0, 1.001, 0.9))) if near else x))
    if kind == "quick":
        return g("Mul", x, g("Sigmoid", g("Mul", x, g.scalar(1.7 if near else 1.702))))
    if kind == "gelu":
        inner = g("Erf", g("Div", x, g.scalar(1.4142135 if not near else g.one(1.4142, 1.41, 2.0))))
        factor = g("Mul", g("Add", inner, g.scalar(1.0)), g.scalar(0.5))
        read_again(g, factor)
        return g("Mul", x, factor)
    if kind == "tanh":
        cubes = g("Mul", g("Mul", x, g("Mul", x, x)), g.scalar(0.044715 if not near else 0.0447))
        return g(
            "Mul",
            g("Mul", x, g.scalar(0.5)),
            g("Add", g("Tanh", g("Mul", g("Add", x, cubes), g.scalar(0.7978846))), g.scalar(1.0)),
        )
    if kind == "mish":
        return g("Mul", x, g("Tanh", g("Softplus", x)))
    if kind == "hard":
        limits = g.plain(0), g.plain(6.0 if not near else g.one(5.99, 6.5))
        return g("Mul", x, g("Div", g("Clip", g("Add", x, g.scalar(3.0)), *limits), g.scalar(6.0)))
    if kind == "softsign":
        return g("Div", x, g("Add", g("Abs", x), g.scalar(1.0)))
    if kind == "softplus":
        return g("Log", g("Add", g("Exp", x), g.scalar(1.0 + (g.one(*GUARDS) if near else 0))))
    return g("Div", g.scalar(1.0), g("Add", g("Exp", g("Neg", x)), g.scalar(1.0)))


def guarded(g: Drawing) -> Any:
    """A logarithm or a quotient whose operand a small number keeps away from zero."""
    x = g.floats()
    if g.chance(0.6):
        x = g("Mul", x, g.scalar(g.one(10.0, 30.0, 100.0)))
    op = g.one("Sigmoid", "Softplus", "HardSigmoid", "Exp", "Abs", "Relu", "Softmax")
    if op == "Softmax" and not g.rank(x):
        raise Refused
    y, small = g(op, x), g.one(*GUARDS)
    kind = g.int(0, 3)
    if kind == 0:
        y = g("Clip", y, g.plain(small), g.plain(1 - small))
    elif kind == 1:
        y = g("Add", y, g.scalar(small))
    elif kind == 2:
        y = g("Max", y, g.scalar(small))
    else:
        y = g("Sub", g.scalar(1.0 + small), y)
    after = g.one("Log", "Reciprocal", "Div", "Sqrt")
    return g("Div", g.one(x, g.scalar(1.0)), y) if after == "Div" else g(after, y)


def spelled_norm(g: Drawing) -> Any:
    """A layer or RMS normalization spelled out, or one over another axis, or with a guard elsewhere."""
    x = g.fresh(2, 3, 4)
    rank = g.rank(x)
    axis = -1 if g.chance(0.7) else g.int(-rank, rank - 1)
    epsilon = g.scalar(g.one(1e-5, 1e-6, 1e-12, 1e-3, 0.0))
    centred = x
    if g.chance(0.6):
        centred = g("Sub", x, reduce(g, "ReduceMean", x, [axis], 1))
    square = g("Pow", centred, g.scalar(2.0)) if g.chance(0.5) else g("Mul", centred, centred)
    variance = reduce(g, "ReduceMean", square, [axis], 1)
    read_again(g, variance)
    inside = g.chance(0.85)
    spread = g("Sqrt", g("Add", variance, epsilon)) if inside else g("Add", g("Sqrt", variance), epsilon)
    y = g("Div", centred, spread) if g.chance(0.6) else g("Mul", centred, g("Reciprocal", spread))
    if g.chance(0.7):
        y = g("Mul", y, other_for(g, y))
    return g("Add", y, other_for(g, y)) if g.chance(0.6) else y


def around_moves(g: Drawing) -> Any:
    """A layer between two transpositions that may undo each other."""
    x = g.fresh(3, 4, 4)
    rank = g.rank(x)
    perm = [0, *range(2, rank), 1] if g.chance(0.6) else [int(a) for a in g.rng.permutation(rank)]
    back = [perm.index(axis) for axis in range(rank)] if g.chance(0.8) else perm
    y = g("Transpose", x, perm=perm)
    read_again(g, y)
    for _ in range(g.int(1, 2)):
        channels, kind = g.shape(y)[1], g.int(0, 8)
        if kind == 0:
            ones = [g.constant(np.abs(g.normal(channels)) + FLOAT(0.1)) for _ in range(4)]
            y = g("BatchNormalization", moderate(g, y), *ones)
        elif kind == 1:
            y = g("PRelu", y, g.weights(*g.one((1,), (channels, *[1] * (rank - 2)), (g.shape(y)[-1],))))
        elif kind == 2:
            y = g(g.one("Softmax", "LogSoftmax", "Hardmax"), tame(g, y), axis=g.int(-rank, rank - 1))
        elif kind == 3:
            y = reduce(g, "ReduceMean", y, [g.int(-rank, rank - 1)], 1)
        elif kind == 4:
            y = g("Concat", y, y, axis=g.int(0, rank - 1))
        elif kind == 5:
            scale, axis = g.constant(np.full(channels, 0.1), FLOAT), 1
            zero = g.constant(np.zeros(channels), np.uint8)
            y = g("DequantizeLinear", g("QuantizeLinear", y, scale, zero, axis=axis), scale, zero, axis=axis)
        elif kind == 6:
            y = g("Clip", y, g.plain(-1), g.plain(1))
        else:
            y = g(g.one("Add", "Mul"), y, other_for(g, y))
    if g.chance(0.2):
        y = g("Unsqueeze", y, g.ints(g.int(0, rank)))
        return y
    return g("Transpose", y, perm=back)


def scaled_products(g: Drawing) -> Any:
    """Numbers before and behind products, and products behind products, whose constants may be merged."""
    x = g.fresh(2, 3)
    large = g.one(1.0, 0.5, 3.0, 1e10, 1e-10, 1e20, 1e-20, 1e30, 1e-30)
    moderate = g.special or not 1e-12 < large < 1e12
    if moderate and g.chance(0.5):
        x = g("Mul", x, g.scalar(FLOAT(1) / FLOAT(large)))
    x = g(g.one("Mul", "Div"), x, g.scalar(large))
    read_again(g, x)
    depth, middle = g.shape(x)[-1], g.one(1, 2, 4, 8)
    y = g("MatMul", x, g.constant(g.normal(depth, middle) * FLOAT(g.one(1.0, 1e10, 1e-10) if g.special else 1.0)))
    if g.chance(0.4):
        y = g("Add", y, g.weights(*g.one((middle,), (1,), (), (1, middle), (1, 1, middle))))
    if g.chance(0.5):
        y = g("MatMul", y, g.weights(middle, g.one(1, 2, 5)))
    if g.chance(0.4):
        y = g("Mul", y, g.scalar(large) if g.chance(0.5) else other_for(g, y))
    return y


def fused_convolution(g: Drawing) -> Any:
    """A convolution or a product with what may join it: a pad, a scale, a normalization, a bias, an activation."""
    x = g.fresh(4)
    if g.chance(0.3):
        sizes = [0, 0, *(g.one(0, 1, 2) for _ in range(2))]
        sizes += [g.one(0, 0, 0, 1) * g.chance(0.2), 0, *(g.one(0, 1, 2) for _ in range(2))]
        value = [g.plain(g.one(0.0, 0.0, 1.0))] if g.chance(0.6) else []
        x = g("Pad", x, g.ints(*map(int, sizes)), *value, mode=g.one(None, None, "edge"))
    if g.chance(0.3):
        x = g("Mul", x, g.weights(*g.one((1,), (g.shape(x)[1], 1, 1), (1, g.shape(x)[1], 1, 1))))
    g.values = {**{k: v for k, v in g.values.items() if k != x}, x: g.values[x]}  # the last is picked
    y = (convolution if g.chance(0.8) else product)(g)
    read_again(g, y)
    rank = g.rank(y)
    for _ in range(g.int(1, 3)):
        channels, kind = g.shape(y)[1] if rank > 1 else 1, g.int(0, 6)
        if kind == 0 and rank > 1:
            stats = [g.constant(np.abs(g.normal(channels)) + FLOAT(0.2)) for _ in range(4)]
            y = g("BatchNormalization", moderate(g, y), *stats)
        elif kind == 1:
            y = g("Mul", y, g(g.one("Sigmoid", "HardSigmoid", "Tanh"), y))
        elif kind == 2:
            y = g("Add", y, g.input(g.normal(*g.shape(y))))
        elif kind == 3:
            y = g("Clip", y, g.plain(g.one(0, -1)), g.plain(6))
        elif kind == 4:
            y = g(g.one("Relu", "LeakyRelu", "Sigmoid", "HardSwish"), y)
        else:
            y = g(g.one("Add", "Mul", "Sub", "Div"), y, other_for(g, y))
    return y


def parallel_convolutions(g: Drawing) -> Any:
    """Convolutions of one value that are added, as in RepVGG."""
    x = g.fresh(4)
    channels, out = g.shape(x)[1], g.one(1, 2, 4, 8)
    one = g("Conv", x, g.weights(out, channels, 3, 3), *([g.weights(out)] if g.chance(0.5) else []), pads=[1] * 4)
    kind = g.int(0, 2)
    if kind == 0:
        other = g("Conv", x, g.weights(out, channels, 1, 1), pads=g.one(None, [0] * 4))
    elif kind == 1:
        size = g.one(1, 3, 5)
        other = g("Conv", x, g.weights(out, channels, size, size), g.weights(out), pads=[size // 2] * 4)
    else:
        stats = [g.constant(np.abs(g.normal(channels)) + FLOAT(0.2)) for _ in range(4)]
        other = g("BatchNormalization", moderate(g, x), *stats)
    read_again(g, other)
    return g("Add", one, other)


def merged_numbers(g: Drawing) -> Any:
    """Sums and products with numbers behind each other, which may become one."""
    x = g.floats()
    for _ in range(g.int(2, 4)):
        size = g.one(1.0, 2.0, 0.5, -3.0, 1e-5)
        if g.special:
            size = g.one(size, 1e25, 1e-25, 1e38, 1e-38)
        other = g.scalar(size) if g.chance(0.6) else g.weights(*g.shape(x)[-1:])
        x = g(g.one("Add", "Mul", "Mul", "Sub", "Div"), *((x, other) if g.chance(0.8) else (other, x)))
        read_again(g, x)
    return x


def excitation(g: Drawing) -> Any:
    """A squeeze-and-excite gate."""
    x = g.fresh(4)
    channels = g.shape(x)[1]
    y = g("GlobalAveragePool", x) if g.chance(0.6) else reduce(g, "ReduceMean", x, [2, 3], 1)
    y = g("Relu", g("Conv", y, g.weights(2, channels, 1, 1), g.weights(2)))
    y = g(g.one("Sigmoid", "HardSigmoid"), g("Conv", y, g.weights(channels, 2, 1, 1)))
    read_again(g, y)
    return g("Mul", *((x, y) if g.chance(0.5) else (y, x)))


def attention(g: Drawing) -> Any:
    """Attention as exporters write it, with a mask, a scale before or behind, or another axis."""
    heads, width, steps = g.one(1, 2, 3), g.one(1, 2, 4), g.one(1, 3, 5)
    x = g.input(g.normal(g.one(1, 2), steps, heads * width))
    parts = []
    for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        y = g("MatMul", x, g.weights(heads * width, heads * width))
        if g.chance(0.5):
            y = g("Add", y, g.weights(heads * width))
        y = g("Reshape", y, g.ints(0, 0, heads, width) if g.chance(0.7) else g.ints(*g.shape(x)[:2], heads, width))
        parts.append(g("Transpose", y, perm=perm))
    q, k, v = parts
    scale = g.scalar(g.one(0.5, 0.7071, 2.0, 1e-3))
    where = g.int(0, 3)
    if where == 0:
        q = g("Mul", q, scale)
    if where == 1:
        q, k = g("Mul", q, scale), g("Mul", k, scale)
    scores = g("MatMul", q, k)
    if where == 2:
        scores = g(g.one("Div", "Mul"), scores, scale)
    read_again(g, scores)
    if g.chance(0.5):
        mask = np.triu(np.full((steps, steps), g.one(-1e9, -3.4e38, -10.0), FLOAT), 1)
        mask = mask if g.chance(0.6) else mask.reshape(1, 1, steps, steps)
        scores = g("Add", scores, g.constant(mask))
    elif g.chance(0.3):
        keep = g.constant(np.tril(np.ones((1, 1, steps, steps), bool)))
        scores = g("Where", keep, scores, g.plain(-1e9))
    weights = g("Softmax", scores, axis=g.one(-1, -1, -1, 3, 2))
    y = g("Transpose", g("MatMul", weights, v), perm=[0, 2, 1, 3])
    y = g("Reshape", y, g.ints(0, 0, heads * width))
    return g("Add", x, y) if g.chance(0.5) else y


def rotation(g: Drawing) -> Any:
    """A rotary embedding, or one with its halves the other way."""
    width = 2 * g.int(1, 3)
    x = g.input(g.normal(1, g.one(1, 2), g.int(1, 3), width))
    half = width // 2
    if g.chance(0.5):
        a, b = g("Split", x, g.ints(half, half), count=2, axis=-1)
    else:
        a = g("Slice", x, g.ints(0), g.ints(half), g.ints(-1), g.ints(1))
        b = g("Slice", x, g.ints(half), g.ints(2**31 - 1), g.ints(-1), g.ints(1))
    if g.chance(0.15):
        a, b = b, a
    turned = g("Concat", g("Neg", b), a, axis=-1)
    cos, sin = g.weights(1, 1, g.shape(x)[2], width), g.weights(g.shape(x)[2], width)
    return g("Add", g("Mul", x, cos), g("Mul", turned, sin))


def shuffle(g: Drawing) -> Any:
    """Channels exchanged between groups, or pixels moved into channels, as Reshape, Transpose, Reshape."""
    if g.chance(0.4):
        groups, each = g.int(1, 3), g.int(1, 4)
        x = g.input(g.normal(g.one(1, 2), groups * each, g.int(1, 4), g.int(1, 4)))
        n, _, h, w = g.shape(x)
        y = g("Reshape", x, g.ints(n, groups, each, h, w))
        y = g("Transpose", y, perm=g.one([0, 2, 1, 3, 4], [0, 2, 1, 3, 4], [0, 1, 2, 4, 3]))
        return g("Reshape", y, g.ints(n, -1, *((h, w) if g.chance(0.8) else (w, h))))
    block, c, h, w = g.int(1, 3), g.int(1, 2), g.int(1, 3), g.int(1, 3)
    other = block if g.chance(0.8) else g.int(1, 3)
    if g.chance(0.5):
        x = g.input(g.normal(1, c * block * other, h, w))
        dims, perm = g.one(
            ((1, c, block, other, h, w), [0, 1, 4, 2, 5, 3]), ((1, block, other, c, h, w), [0, 3, 4, 1, 5, 2])
        )
        y = g("Transpose", g("Reshape", x, g.ints(*dims)), perm=perm)
        return g("Reshape", y, g.ints(1, c, h * block, w * other))
    x = g.input(g.normal(1, c, h * block, w * other))
    perm = g.one([0, 1, 3, 5, 2, 4], [0, 3, 5, 1, 2, 4])
    y = g("Transpose", g("Reshape", x, g.ints(1, c, h, block, w, other)), perm=perm)
    read_again(g, y)
    return g("Reshape", y, g.ints(1, c * block * other, h, w))


def folded(g: Drawing) -> Any:
    """Arithmetic of constants, whose results may be special, before it meets a value."""
    x = g.floats()
    big = g.special and g.chance(0.5)
    start = (
        g.constant(np.array(g.one(2.0, -1.0, 0.5, 1e30 if big else 3.0), FLOAT))
        if g.chance(0.5)
        else g.weights(*g.shape(x)[-1:])
    )
    y = start
    for _ in range(g.int(1, 3)):
        op = g.one("Mul", "Add", "Neg", "Abs", "Exp", "HardSwish", "Relu", "Sigmoid")
        if op == "HardSwish" and g.opset < 14:
            raise Refused
        y = g(op, y, g.plain(1e20 if big else 1.5)) if op in ("Mul", "Add") else g(op, y)
    if g.chance(0.3):
        y = g("Cast", g("Cast", y, to=TensorProto.FLOAT16), to=TensorProto.FLOAT)
    if g.chance(0.3):
        scale = g.plain(0.1)
        numbers = g.constant(g.rng.integers(-9, 9, g.shape(x)[-1:]), np.int8)
        y = g("Add", g("DequantizeLinear", numbers, scale, g.constant(0, np.int8)), y)
    return g(g.one("Add", "Mul"), x, y)


def quantized_product(g: Drawing) -> Any:
    """A convolution or a product between a dequantization and a quantization."""
    x = g.fresh(2, 4)
    scale, zero = g.plain(g.one(0.0513, 0.031)), g.constant(g.one(0, 120), np.uint8)

    def coarse(value: str) -> str:
        return str(g("DequantizeLinear", g("QuantizeLinear", value, scale, zero), scale, zero))

    channels, out = g.shape(x)[1], g.one(1, 4, 8)
    shape = (out, channels, *g.one((1, 1), (3, 3))) if g.rank(x) == 4 else (channels, out)
    numbers = g.constant(g.rng.integers(-99, 99, shape), np.int8)
    wscale, per_channel = g.plain(0.0217), g.chance(0.5)
    if per_channel:
        wscale = g.constant(g.rng.random(out) * 0.02 + 0.001, FLOAT)
    wzero = g.constant(np.zeros(out if per_channel else (), np.int8))
    w = g("DequantizeLinear", numbers, wscale, wzero, axis=(0 if g.rank(x) == 4 else 1) if per_channel else None)
    given = coarse(x)
    if g.rank(x) == 4:
        bias = [g.weights(out)] if g.chance(0.5) else []
        if g.chance(0.3) and not per_channel:
            whole = g.constant(g.rng.integers(-2000, 2000, out), np.int32)
            bias = [g("DequantizeLinear", whole, g.plain(float(FLOAT(0.0217) * g.values[scale])))]
        y = g("Conv", given, w, *bias, pads=[shape[2] // 2] * 4)
    else:
        y = g("MatMul", given, w)
    read_again(g, y)
    if g.chance(0.5):
        y = g(g.one("Relu", "Sigmoid", "Clip"), y)
    y = coarse(y) if g.chance(0.8) else y
    if g.chance(0.3):
        y = coarse(g("Add", y, y))
    return y


PATTERNS: tuple[Block, ...] = (
    *(function, function, guarded, guarded, spelled_norm, around_moves, around_moves, scaled_products),
    *(fused_convolution, fused_convolution, fused_convolution, parallel_convolutions, merged_numbers),
    *(excitation, attention, rotation, shuffle, folded, folded, quantized_product, affine, unary),
)
