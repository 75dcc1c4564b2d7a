"""Blocks of one layer or few: each family of operators, with random shapes and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from fuzz.random_graphs.drawing import FLOAT, Drawing, Refused

Block = Callable[[Drawing], Any]
# the first are drawn most often: their kernels are shared by most graphs
UNARY = [
    "Relu",
    "Sigmoid",
    "Neg",
    "Abs",
    "Tanh",
    "Exp",
    "Sqrt",
    "HardSwish",
    "HardSigmoid",
    "LeakyRelu",
    "Elu",
    "Softplus",
    "Erf",
    "Floor",
    "Clip",
    "Reciprocal",
    "Log",
    "Softsign",
    "Sin",
    "Cos",
    "Round",
    "Ceil",
    "Sign",
    "Selu",
    "Celu",
    "ThresholdedRelu",
    "Atan",
    "Asinh",
    "Gelu",
    "Mish",
]
BINARY = ["Add", "Mul", "Sub", "Div", "Max", "Min", "Pow", "PRelu"]
SINCE = {"Gelu": 20, "Mish": 18, "HardSwish": 14}


def ranked(g: Drawing, items: list[str]) -> str:
    """One of the items; the first are likelier by far."""
    if g.few and g.chance(0.98):
        return items[int(g.rng.integers(3))]
    return items[min(int(g.rng.exponential(len(items) / 5)), len(items) - 1)]


def unary(g: Drawing) -> Any:
    """A function of one value."""
    op, x = ranked(g, UNARY), g.floats()
    if SINCE.get(op, 0) > g.opset:
        raise Refused
    more: dict[str, Any] = {}
    if op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu") and g.chance(0.7):
        more["alpha"] = g.one(0.1, 0.25, 1.0, 2.0)
    if op == "HardSigmoid" and g.chance(0.6):
        more |= {"alpha": 1 / 6, "beta": 0.5}
    if op == "Clip":
        low, high = g.one((0, 6), (-1, 1), (0, None), (None, 1), (-0.5, 0.25), (0, 1))
        return g(op, x, g.plain(low) if low is not None else "", *([g.plain(high)] if high is not None else []))
    return g(op, x, **more)


def other_for(g: Drawing, x: str) -> str:
    """A second operand: a number, a vector, one row of channels, another value, or the value itself."""
    shape = g.shape(x)
    kind = g.int(0, 7)
    if kind <= 1:
        return g.scalar(g.one(0.5, 1.0, 2.0, -1.0, 0.0, 3.0, 1e-5, float(g.rng.normal())))
    if kind == 2:
        return g.weights(*(size if g.chance(0.5) else 1 for size in shape))
    if kind == 3 and shape:
        return g.weights(*shape[g.int(0, len(shape) - 1) :])
    if kind == 4 and len(shape) > 1:
        return g.weights(1, shape[1], *[1] * (len(shape) - 2))
    if kind == 5 and len(shape) > 2:
        return g.weights(shape[1], *[1] * (len(shape) - 2))
    if kind == 6:
        return g.pick(lambda y: y.dtype == FLOAT and fits(y.shape, shape))
    return g.input(g.normal(*shape)) if g.chance(0.3) else x


def fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes broadcast."""
    return all(a == b or 1 in (a, b) for a, b in zip(one[::-1], other[::-1], strict=False))


def binary(g: Drawing) -> Any:
    """A function of two values."""
    op, x = ranked(g, BINARY), g.floats()
    y = other_for(g, x)
    if op == "PRelu" and not (len(g.shape(y)) <= len(g.shape(x)) and g(op, x, y)):
        raise Refused
    return g(op, *((x, y) if op == "PRelu" or g.chance(0.7) else (y, x)))


def chain(g: Drawing) -> None:
    """Functions after each other, which may be fused."""
    for _ in range(g.int(2, 4)):
        (unary if g.chance(0.6) else binary)(g)


def affine(g: Drawing) -> Any:
    """A batch normalization, or a scale and a shift of channels."""
    x = g.fresh(2, 3, 4)
    channels = g.shape(x)[1]
    moderate(g, x)
    if g.chance(0.6):
        stats = [g.weights(channels), g.weights(channels), g.weights(channels)]
        variance = g.constant(np.abs(g.rng.normal(size=channels)).astype(FLOAT) + g.one(0.1, 1e-6))
        return g("BatchNormalization", x, *stats, variance, epsilon=g.one(None, 1e-3, 1e-6))
    tail = [1] * (g.rank(x) - 2)
    y = g("Mul", x, g.weights(channels, *tail))
    return g("Add", y, g.weights(channels, *tail))


def convolution(g: Drawing) -> Any:
    """A convolution of one to three spatial dims."""
    x = g.fresh(3, 4, 4, 4, 4, 5) if g.chance(0.9) else g.fresh(4)
    _, channels, *size = g.shape(x)
    rank = len(size)
    group = g.one(1, 1, 1, channels, channels, 2 if channels % 2 == 0 else 1)
    out = group * g.one(1, 1, 2, 4) if group > 1 else g.one(1, 2, 3, 4, 8, 8, 16)
    kernel = [g.one(1, 1, 3, 3, 3, 2, 5) for _ in size] if g.chance(0.4) else [g.one(1, 3)] * rank
    same = [k // 2 for k in kernel]
    pads = g.one([*same, *same], [0] * 2 * rank, None, [g.int(0, 2) for _ in range(2 * rank)])
    more: dict[str, Any] = {"pads": pads, "group": group}
    if g.chance(0.3):
        more["strides"] = [g.one(1, 2, 2, 3) for _ in size]
    if g.chance(0.2):
        more["dilations"] = [g.one(1, 2) for _ in size]
    if g.chance(0.1):
        more["auto_pad"], more["pads"] = g.one("SAME_UPPER", "SAME_LOWER", "VALID"), None
        if g.chance(0.6):
            more["strides"] = None
    names = [g.weights(out, channels // group, *kernel)]
    if g.chance(0.6):
        names.append(g.weights(out))
    return g("Conv", x, *names, **more)


def transposed_convolution(g: Drawing) -> Any:
    """A transposed convolution; its pads may exceed its kernel."""
    x = g.fresh(3, 4, 4, 4)
    _, channels, *size = g.shape(x)
    rank, group = len(size), g.one(1, 1, 1, 2 if channels % 2 == 0 else 1, channels)
    kernel = [g.int(1, 4) for _ in size]
    more: dict[str, Any] = {"group": group}
    if g.chance(0.7):
        more["strides"] = [g.one(1, 2, 2, 3) for _ in size]
    if g.chance(0.6):
        more["pads"] = [g.int(0, 3) for _ in range(2 * rank)]
    if g.chance(0.2):
        more["dilations"] = [g.one(1, 2) for _ in size]
    if g.chance(0.3) and "strides" in more:
        more["output_padding"] = [g.int(0, s - 1) for s in more["strides"]]
    if g.chance(0.1):
        more["auto_pad"], more["pads"] = g.one("SAME_UPPER", "SAME_LOWER", "VALID"), None
        more["strides"] = [min(one) for one in zip(more.get("strides", kernel), kernel, strict=True)]
        more.pop("output_padding", None)
    names = [g.weights(channels, g.one(1, 2, 4), *kernel)]
    if g.chance(0.5):
        names.append(g.weights(g.shape(names[0])[1] * group))
    return g("ConvTranspose", x, *names, **more)


def pool(g: Drawing) -> Any:
    """A pool, or a global one."""
    x = g.fresh(3, 4, 4, 4, 5)
    op = g.one("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool")
    if op.startswith("Global"):
        return g(op, x)
    rank = g.rank(x) - 2
    kernel = [g.int(1, 3) for _ in range(rank)]
    more: dict[str, Any] = {"kernel_shape": kernel}
    if g.chance(0.6):
        more["strides"] = [g.int(1, 2) for _ in kernel]
    if g.chance(0.5):
        more["pads"] = [g.int(0, k - 1) for k in (*kernel, *kernel)]
    pads = more.get("pads", [0] * 2 * rank)
    if any(s + pads[a] + pads[a + rank] < kernel[a] for a, s in enumerate(g.shape(x)[2:])):
        raise Refused
    if g.chance(0.3) and op != "LpPool":
        more["ceil_mode"] = 1
    if op == "AveragePool" and g.chance(0.4):
        more["count_include_pad"] = 1
    return g(op, x, **more)


def product(g: Drawing) -> Any:
    """A product of matrices, with constants or without."""
    x = g.fresh(2, 2, 3, 3, 4)
    *_, depth = g.shape(x)
    kind = g.int(0, 5)
    if kind <= 2:
        y = g("MatMul", x, g.weights(depth, g.one(1, 2, 3, 4, 8, 16)))
        return g("Add", y, g.weights(g.shape(y)[-1])) if g.chance(0.5) else y
    if kind == 3 and g.rank(x) == 2:
        width, turned = g.one(1, 3, 4, 8), g.int(0, 1)
        names = [g.weights(*((width, depth) if turned else (depth, width)))]
        if g.chance(0.7):
            names.append(g.weights(*g.one((width,), (1,), (), (1, width))))
        more = {"alpha": g.one(None, 0.5, 1.0), "beta": g.one(None, None, 2.0, 0.0)}
        return g("Gemm", x, *names, transB=turned or None, **more)
    if kind == 4:
        return g("MatMul", g.weights(g.one(1, 2, 5), g.shape(x)[-2]), x)
    batch = g.shape(x)[:-2]
    return g("MatMul", x, g.input(g.normal(*(g.one(s, 1) for s in batch), depth, g.one(1, 3, 4))))


def axes_of(g: Drawing, x: str, most: int = 9) -> list[int]:
    """Some of a value's axes, negative ones among them."""
    rank = g.rank(x)
    if not rank:
        raise Refused
    count = g.int(1, min(rank, most))
    chosen = sorted(int(a) for a in g.rng.permutation(rank)[:count])
    return [a - rank for a in chosen] if g.chance(0.4) else chosen


def reduce(g: Drawing, op: str, x: str, axes: list[int] | None, keepdims: int) -> str:
    """A reduction, with its axes where the opset wants them."""
    if axes is not None and (g.opset >= 18 or op == "ReduceSum"):
        return str(g(op, x, g.ints(*axes), keepdims=keepdims))
    return str(g(op, x, axes=axes, keepdims=keepdims))


def reduction(g: Drawing) -> Any:
    """A reduction of some axes or all."""
    op = g.one("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceSumSquare")
    op = g.one(op, op, op, "ReduceLogSumExp", "ReduceProd")
    x = g.floats()
    return reduce(g, op, x, axes_of(g, x) if g.chance(0.85) else None, g.int(0, 1))


def normalization(g: Drawing) -> Any:
    """A normalization."""
    x = g.fresh(2, 3, 4)
    shape, epsilon = g.shape(x), g.one(None, 1e-5, 1e-3, 1e-6, 1e-12)
    kind = g.one("LayerNormalization", "Softmax", "InstanceNormalization", "LogSoftmax", "LpNormalization", "LRN")
    if kind == "LayerNormalization":
        if g.opset < 17:
            raise Refused
        axis = g.one(-1, -1, len(shape) - 1, g.int(-len(shape), len(shape) - 1))
        part = shape[axis:] if axis else shape
        more = [g.weights(*part)] if g.chance(0.6) else []
        return g(kind, x, g.weights(*part), *more, axis=axis, epsilon=epsilon)
    if kind in ("Softmax", "LogSoftmax"):
        return g(kind, x, axis=g.int(-len(shape), len(shape) - 1))
    if kind == "LpNormalization":
        return g(kind, x, axis=g.int(-len(shape), len(shape) - 1), p=g.int(1, 2))
    if len(shape) < 3:
        raise Refused
    if kind == "LRN":
        return g(kind, x, size=g.one(1, 3, 5))
    return g(kind, x, g.weights(shape[1]), g.weights(shape[1]), epsilon=epsilon)


def resize(g: Drawing) -> Any:
    """A change of the picture's size."""
    x = g.fresh(4)
    size = g.shape(x)
    mode = g.one("nearest", "nearest", "linear", "linear", "cubic")
    more: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": g.one("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
    }
    if mode == "nearest":
        more["nearest_mode"] = g.one("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    if g.chance(0.6) and more["coordinate_transformation_mode"] != "align_corners":
        scale = [1.0, 1.0, g.one(1.0, 2.0, 0.5, 3.0), g.one(1.0, 2.0, 2.0, 0.5)]
        return g("Resize", x, "", g.constant(scale, FLOAT), **more)
    return g("Resize", x, "", "", g.ints(size[0], size[1], g.int(1, 12), g.int(1, 12)), **more)


def selection(g: Drawing) -> Any:
    """Places and values of the largest or smallest."""
    x = tame(g, g.floats())
    rank = g.rank(x)
    if not rank:
        raise Refused
    axis = g.int(-rank, rank - 1)
    kind = g.int(0, 3)
    if kind == 0:
        op = g.one("ArgMax", "ArgMin")
        return g(op, x, axis=axis, keepdims=g.int(0, 1), select_last_index=g.one(None, 0, 1))
    if kind == 1:
        values = g("TopK", x, g.ints(g.int(1, g.shape(x)[axis])), count=2, axis=axis, largest=g.one(None, 0, 1))
        return g.one(*values)
    if kind == 2:
        return g("CumSum", x, g.constant(axis, np.int64), exclusive=g.int(0, 1), reverse=g.int(0, 1))
    return g("Hardmax", x, axis=axis)


def moderate(g: Drawing, x: str) -> str:
    """A value of moderate numbers, for layers whose steps have no order."""
    if g.special and not np.abs(g.values[x]).max(initial=0) < 1e15:
        raise Refused
    return x


def tame(g: Drawing, x: str) -> str:
    """A value without NaN. What is the largest of numbers that are none has a test of its own."""
    if np.isnan(g.values[x]).any():
        raise Refused
    return x


def recurrent(g: Drawing) -> Any:
    """A recurrent layer."""
    op, gates = g.one(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    direction = g.one("forward", "forward", "reverse", "bidirectional")
    ways, hidden = 1 + (direction == "bidirectional"), g.one(1, 2, 4, 5)
    x = g.fresh(3)
    width = g.shape(x)[2]
    names = [g.weights(ways, gates * hidden, width), g.weights(ways, gates * hidden, hidden)]
    if g.chance(0.7):
        names.append(g.weights(ways, 2 * gates * hidden))
    more = {"linear_before_reset": 1} if op == "GRU" and g.chance(0.5) else {}
    return g(op, x, *names, count=3 if op == "LSTM" else 2, hidden_size=hidden, direction=direction, **more)


def quantization(g: Drawing) -> str:
    """A value through bytes and back."""
    x = g.floats()
    scale = g.plain(g.one(0.0513, 0.0217, 0.1, 0.0311))
    zero = g.constant(g.one(0, 7, 120), np.uint8) if g.chance(0.7) else g.constant(g.one(0, 0, -3), np.int8)
    return str(g("DequantizeLinear", g("QuantizeLinear", x, scale, zero), scale, zero))


def casts(g: Drawing) -> Any:
    """A value as another type and back."""
    x = g.floats()
    kind = g.one(TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.FLOAT)
    if g.special and kind not in (TensorProto.FLOAT, TensorProto.BOOL):
        raise Refused  # what becomes of them is open
    return g("Cast", g("Cast", x, to=kind), to=TensorProto.FLOAT)


def whole_numbers(g: Drawing) -> Any:
    """Arithmetic of whole numbers, which must not wrap."""
    kind = g.one(np.int64, np.int64, np.int32)
    x = (
        g.pick(lambda v: v.dtype == kind)
        if g.chance(0.5)
        else g.input(g.rng.integers(-9, 9, g.dims(g.int(0, 3))).astype(kind))
    )
    if np.abs(g.values[x]).max(initial=0) > 10000:
        raise Refused
    op = g.one("Add", "Sub", "Mul", "Max", "Min", "Abs", "Neg", "Equal", "Greater", "Div", "Mod")
    if op in ("Abs", "Neg"):
        return g(op, x)
    if op in ("Max", "Min") and g.opset < 12:
        raise Refused
    other = g.constant(g.int(1, 9) * g.one(1, 1, -1), kind)
    y = g(op, x, other)
    return g("Cast", y, to=TensorProto.FLOAT) if g.chance(0.5) else y


def comparison(g: Drawing) -> Any:
    """A choice between values by a condition."""
    x = g.floats()
    y = other_for(g, x)
    condition = g(g.one("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"), x, y)
    if g.chance(0.2):
        condition = g("Not", condition)
    if g.chance(0.2):
        return g("Cast", condition, to=TensorProto.FLOAT)
    return g("Where", condition, *((x, y) if g.chance(0.5) else (y, x)))


FAMILIES: tuple[Block, ...] = (
    *(unary, unary, binary, binary, chain, affine, convolution, convolution, transposed_convolution, pool),
    *(product, product, reduction, normalization, resize, selection, recurrent, quantization, casts),
    *(whole_numbers, comparison),
)
