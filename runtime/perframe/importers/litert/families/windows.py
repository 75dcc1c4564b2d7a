"""Convolutions, pools and products of matrices.

Data has its channels last, and layers take them second: each layer stands between two transpositions. The pass
`move_channels` removes those that meet.
"""

from __future__ import annotations

from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import operator, rows
from perframe.ir import Value

PADDINGS = {0: "SAME_UPPER", 1: "VALID"}
AXES = ("D", "H", "W")


def _numbers(node: LiteRTNode, prefix: str, rank: int) -> tuple[int, ...]:
    """Return an option for each spatial axis: StrideH and StrideW, or such."""
    names = [f"{prefix}{axis}" for axis in AXES[3 - rank :]]
    found = tuple(int(node.option(name, 1)) for name in names)
    if min(found) < 1:
        raise NotImplementedError(f"its {prefix}s {found} are not positive")
    return found


def _windows(node: LiteRTNode, rank: int) -> dict[str, object]:
    if "Pads" in node.operation.options:  # of a dilated convolution, see dilated.py
        return {"pads": node.option("Pads"), "strides": _numbers(node, "Stride", rank)}
    padding = PADDINGS.get(node.option("Padding"))
    if padding is None:
        raise NotImplementedError(f"the padding {node.option('Padding')} is not known")
    return {"auto_pad": padding, "strides": _numbers(node, "Stride", rank)}


@operator("CONV_2D", "CONV_3D", "DEPTHWISE_CONV_2D")
def _conv(node: LiteRTNode) -> Value:
    rank = 3 if node.operation.code == "CONV_3D" else 2
    if node.operation.code == "DEPTHWISE_CONV_2D":  # weights of (1, height, width, outputs)
        weights = node.weights(1, (3, 0, 1, 2))
    elif rank == 2:  # (outputs, height, width, depth)
        weights = node.weights(1, (0, 3, 1, 2))
    else:  # (depth, height, width, channels, outputs)
        weights = node.weights(1, (4, 3, 0, 1, 2))
    channels, depth = node.sizes(node.x(0), -1)[0], node.sizes(weights, 1)[0]
    if channels % depth:
        raise ValueError(f"{channels} channels, and weights for {depth}")
    dilations = tuple(int(node.option(f"Dilation{axis}Factor", 1)) for axis in AXES[3 - rank :])
    made = node(
        "Conv",
        node.first(node.x(0)),
        weights,
        node.optional(2),
        group=channels // depth,
        dilations=dilations,
        **_windows(node, rank),
    )
    return node.last(made)


@operator("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE")
def _transpose_conv(node: LiteRTNode) -> Value:
    """The output's shape is the first input; it decides where the window begins."""
    rank = 2 if node.operation.code == "TRANSPOSE_CONV" else 3
    # (outputs, height, width, depth), or (depth, height, width, outputs, channels)
    weights = node.weights(1, (3, 0, 1, 2) if rank == 2 else (4, 3, 0, 1, 2))
    x, wanted = node.x(2), node.entries(0)[1:-1]
    strides, kernel = _numbers(node, "Stride", rank), node.sizes(weights, *range(2, 2 + rank))
    dilations = tuple(int(node.option(f"Dilation{axis}Factor", 1)) for axis in AXES[3 - rank :])
    same = _windows(node, rank)["auto_pad"] == "SAME_UPPER"
    sizes = node.sizes(x, *range(1, 1 + rank))
    begin, end, extra = [], [], []
    for size, want, stride, window, dilation in zip(sizes, wanted, strides, kernel, dilations, strict=True):
        whole = (size - 1) * stride + (window - 1) * dilation + 1
        cut = max(whole - want, 0) if same else 0
        before = cut // 2
        begin.append(before)
        end.append(max(whole - want - before, 0))
        extra.append(max(want - whole, 0))
    made = node(
        "ConvTranspose",
        node.first(x),
        weights,
        node.optional(3),
        strides=strides,
        dilations=dilations,
        pads=(*begin, *end),
        output_padding=tuple(extra),
    )
    return node.last(made)


def _pool(node: LiteRTNode, layer: str) -> Value:
    return node.last(node(layer, node.first(node.x(0)), **_window_of_pool(node)))


def _window_of_pool(node: LiteRTNode) -> dict[str, object]:
    kernel = (int(node.option("FilterHeight")), int(node.option("FilterWidth")))
    return {"kernel_shape": kernel, **_windows(node, 2)}


rows({"AVERAGE_POOL_2D": "AveragePool"}, _pool, __name__)
rows({"MAX_POOL_2D": "MaxPool"}, _pool, __name__, moves=True)


@operator("L2_POOL_2D")
def _l2_pool(node: LiteRTNode) -> Value:
    x = node.first(node.x(0))
    return node.last(node("Sqrt", node("AveragePool", node("Mul", x, x), **_window_of_pool(node))))


@operator("FULLY_CONNECTED")
def _fully_connected(node: LiteRTNode) -> Value:
    node.refuse("WeightsFormat")
    x, shape = node.x(0), node.shape(node.x(0))
    weights = node.weights(1, (0, 1))
    (depth,) = node.sizes(weights, 1)
    if len(shape) > 2 and node.option("KeepNumDims"):
        made = node("MatMul", x, node.weights(1, (1, 0)))
        return node("Add", made, node.x(2)) if node.has(2) else made
    flat = x if len(shape) == 2 and shape[1] == depth else node("Reshape", x, node.ints(-1, depth), allowzero=0)
    return node("Gemm", flat, weights, node.optional(2), transB=1)


@operator("BATCH_MATMUL")
def _batch_matmul(node: LiteRTNode) -> Value:
    a, b = (
        _turned(node, node.x(index)) if node.option(option) else node.x(index)
        for index, option in ((0, "AdjX"), (1, "AdjY"))
    )
    return node("MatMul", a, b)


def _turned(node: LiteRTNode, value: Value) -> Value:
    rank = node.rank(value)
    return node("Transpose", value, perm=(*range(rank - 2), rank - 1, rank - 2))
