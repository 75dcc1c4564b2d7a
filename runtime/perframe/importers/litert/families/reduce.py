"""Operators that reduce axes, sum along them, or choose among their elements."""

from __future__ import annotations

import numpy as np

from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import operator, rows
from perframe.ir import Value
from perframe.tensor import DataType

REDUCTIONS = {
    "MEAN": "ReduceMean",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
    "SUM": "ReduceSum",
}


def _reduced(node: LiteRTNode, layer: str, x: Value) -> Value:
    """Reduce first and drop the dims then: a reduction that keeps them can have its channels in either order."""
    rank, keeps = node.rank(x), bool(node.option("KeepDims"))
    axes = sorted({_axis(axis, rank) for axis in node.axes(1)})
    if not axes:
        return x
    if rank < 3:
        return node(layer, x, node.ints(*axes), keepdims=int(keeps))
    made = node(layer, x, node.ints(*axes), keepdims=1)
    return made if keeps else node("Squeeze", made, node.ints(*axes))


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < max(rank, 1):
        raise ValueError(f"axis {axis} of a tensor of rank {rank}")
    return axis % max(rank, 1)


def _logical(node: LiteRTNode, layer: str) -> Value:
    numbers = node.cast(node.x(0), DataType.INT32)
    return node.cast(_reduced(node, layer, numbers), DataType.BOOL)


def _arg(node: LiteRTNode, layer: str) -> Value:
    (axis,) = node.axes(1)
    return node(layer, node.x(0), axis=axis, keepdims=0)


rows(REDUCTIONS, lambda node, layer: _reduced(node, layer, node.x(0)), __name__)
rows({"REDUCE_ANY": "ReduceMax", "REDUCE_ALL": "ReduceMin"}, _logical, __name__)
rows({"ARG_MAX": "ArgMax", "ARG_MIN": "ArgMin"}, _arg, __name__)


@operator("TOPK_V2")
def _top_k(node: LiteRTNode) -> list[Value]:
    count = node("Reshape", node.long(node.raw(1)), node.ints(1))
    return node.several(2, "TopK", node.x(0), count, axis=-1)


@operator("CUMSUM")
def _cumsum(node: LiteRTNode) -> Value:
    (axis,) = node.axes(1)
    exclusive, reverse = int(node.option("Exclusive")), int(node.option("Reverse"))
    return node("CumSum", node.x(0), node.constant(axis, np.int64), exclusive=exclusive, reverse=reverse)


@operator("SOFTMAX")
def _softmax(node: LiteRTNode) -> Value:
    x, beta = node.x(0), float(node.option("Beta", 1.0))
    return node("Softmax", x if beta == 1 else node("Mul", x, node.number(beta, x)), axis=-1)


@operator("LOG_SOFTMAX")
def _log_softmax(node: LiteRTNode) -> Value:
    return node("LogSoftmax", node.x(0), axis=-1)


@operator("L2_NORMALIZATION")
def _l2_normalization(node: LiteRTNode) -> Value:
    x = node.x(0)
    length = node("ReduceL2", x, node.ints(-1), keepdims=1)
    return node("Div", x, node("Max", length, node.number(1e-6, x)))


@operator("LOCAL_RESPONSE_NORMALIZATION")
def _local_response(node: LiteRTNode) -> Value:
    size = 2 * int(node.option("Radius")) + 1
    alpha, beta, bias = (float(node.option(name, 0.0)) for name in ("Alpha", "Beta", "Bias"))
    return node.last(node("LRN", node.first(node.x(0)), size=size, alpha=alpha * size, beta=beta, bias=bias))
