"""Kinds that move, select or count elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perframe.importers.sentis.node import INT_MAX, SentisNode
from perframe.importers.sentis.table import adapter
from perframe.ir import Value
from perframe.tensor import DataType


@adapter("Shape")
def _shape(node: SentisNode) -> Value:
    """The end is 8, the largest rank, where all dims follow."""
    return node("Shape", node.x("x"), start=node["start"], end=node["end"])


@adapter("ConstantOfShape")
def _constant_of_shape(node: SentisNode) -> Value:
    dtype = node["dtype"]
    number = node["float"] if dtype.is_float else node["int"]
    return node("ConstantOfShape", node.x("shape"), value=np.array([number], dtype.numpy))


@adapter("Split")
def _split(node: SentisNode) -> list[Value]:
    """The layer's outputs count. Its argument does not: older files have 0 there."""
    count = len(node.operation.outputs)
    return node.several(count, "Split", node.x("x"), node.optional("split"), axis=node["axis"], num_outputs=count)


@adapter("TopK")
def _top_k(node: SentisNode) -> list[Value]:
    k = node.x("k")
    if node.rank(k) == 0:
        k = node("Reshape", k, node.ints(1))
    return node.several(2, "TopK", node.x("x"), k, **node.attributes())


@adapter("OneHot")
def _one_hot(node: SentisNode) -> Value:
    """Unless negative indices count from the end, they are outside."""
    indices, depth = node.x("indices"), node.x("depth")
    if not node["allow_negative"]:
        outside = node("Reshape", node.cast(depth, indices.spec.dtype), node.ints())
        indices = node("Where", node("Less", indices, node.number(0, indices)), outside, indices)
    return node("OneHot", indices, depth, node.x("values"), axis=node["axis"])


@adapter("Compress")
def _compress(node: SentisNode) -> Value:
    axis = {"axis": node["axis"]} if node["has_axis"] else {}
    return node("Compress", node.x("x"), node.x("condition"), **axis)


@adapter("Pad")
def _pad(node: SentisNode) -> Value:
    if node["mode"] != "symmetric":
        inputs = [node.optional(name) for name in ("x", "pads", "value", "axes")]
        return node("Pad", *inputs, mode=node["mode"])
    x, pads = node.x("x"), node.wholes("pads")
    axes = node.wholes("axes") if node.has("axes") else list(range(node.rank(x)))
    if len(pads) != 2 * len(axes):
        raise ValueError(f"it pads {len(axes)} axes by {pads}")
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        x = _mirrored(node, x, axis, before, after)
    return x


def _mirrored(node: SentisNode, x: Value, axis: int, before: int, after: int) -> Value:
    """Pad an axis with its own elements in reverse, those of the edge included."""
    size = node.sizes(x, axis)[0]
    if not 0 <= before <= size or not 0 <= after <= size:
        raise NotImplementedError(f"it pads an axis of {size} symmetrically by {before} and {after}")
    parts = [x]
    if before:
        parts.insert(0, _slice(node, x, axis, before - 1, -INT_MAX, -1))
    if after:
        parts.append(_slice(node, x, axis, -1, -after - 1, -1))
    return x if len(parts) == 1 else node("Concat", *parts, axis=axis)


def _slice(node: SentisNode, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
    return node("Slice", x, *(node.ints(number) for number in (start, end, axis, step)))


@adapter("Narrow")
def _narrow(node: SentisNode) -> Value:
    """A negative start counts from the end, and so does the end unless it reaches past the last element."""
    start, length = (node("Reshape", node.long(node.x(name)), node.ints(1)) for name in ("start", "length"))
    end = node("Add", start, length)
    zero = node.ints(0)
    passes = node("And", node("Less", start, zero), node("GreaterOrEqual", end, zero))
    end = node("Where", passes, node.ints(INT_MAX), end)
    return node("Slice", node.x("x"), start, end, node.ints(node.whole("dim")))


@adapter("Select")
def _select(node: SentisNode) -> Value:
    index = node("Reshape", node.x("index"), node.ints())
    return node("Gather", node.x("x"), index, axis=node.whole("dim"))


@adapter("SliceSet")
def _slice_set(node: SentisNode) -> Value:
    """Scatter the values to the places that the slice has among all elements."""
    x, numbers = node.x("x"), [node.optional(name) for name in ("starts", "ends", "axes", "steps")]
    count = node.constant(0, np.int64), node("Size", x), node.constant(1, np.int64)
    shape = node("Shape", x)
    places = node("Slice", node("Reshape", node("Range", *count), shape), *numbers)
    values = node("Expand", node.x("values"), node("Shape", places))
    flat = [node("Reshape", value, node.ints(-1)) for value in (x, places, values)]
    return node("Reshape", node("ScatterElements", *flat, axis=0), shape)


@adapter("MoveDim")
def _move_dim(node: SentisNode) -> Value:
    x = node.x("x")
    source, target = (_axes(node[name] or (), node.rank(x)) for name in ("source", "destination"))
    return node("Transpose", x, perm=_moved(source, target, node.rank(x)))


def _axes(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes that count from the first. Raises ValueError if one lies outside, or is there twice."""
    found = [axis + rank if axis < 0 else axis for axis in axes]
    if len(set(found)) < len(found) or any(not 0 <= axis < rank for axis in found):
        raise ValueError(f"its dims {tuple(axes)} are not dims of {rank}")
    return found


def _moved(source: Sequence[int], target: Sequence[int], rank: int) -> tuple[int, ...]:
    if len(source) != len(target):
        raise ValueError(f"it moves the dims {tuple(source)} to {tuple(target)}")
    perm = [axis for axis in range(rank) if axis not in source]
    for place, axis in sorted(zip(target, source, strict=True)):
        perm.insert(place, axis)
    return tuple(perm)


@adapter("Diagonal")
def _diagonal(node: SentisNode) -> Value:
    """Flatten the two dims, as the last ones; a diagonal is a slice of them."""
    x, offset = node.x("x"), node["offset"]
    rank = node.rank(x)
    dims = _axes((node["dim1"], node["dim2"]), rank)
    rows, columns = node.sizes(x, *dims)
    begin = offset if offset >= 0 else -offset * columns
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    flat = node("Transpose", x, perm=_moved(dims, (rank - 2, rank - 1), rank))
    flat = node("Reshape", flat, node.ints(*(0,) * (rank - 2), rows * columns))
    end = begin + (count - 1) * (columns + 1) + 1 if count else begin
    return _slice(node, flat, -1, begin, end, columns + 1)


@adapter("AsStrided")
def _as_strided(node: SentisNode) -> Value:
    """Gather the elements at the places that strides and offset give."""
    shape, strides, offset = node.wholes("shape"), node.wholes("strides"), node.whole("offset")
    if len(shape) != len(strides) or min(shape, default=0) < 0:
        raise ValueError(f"its shape is {shape}, and its strides are {strides}")
    node.check_room(*shape)
    places = np.array(offset, np.int64)
    for size, stride in zip(shape, strides, strict=True):
        places = places[..., None] + np.arange(size, dtype=np.int64) * stride
    if places.size and places.min() < 0:
        raise ValueError(f"its strides {strides} and offset {offset} reach before the first element")
    return node("Gather", node("Reshape", node.x("x"), node.ints(-1)), node.constant(places, np.int64), axis=0)


@adapter("BroadcastArgs")
def _broadcast_args(node: SentisNode) -> Value:
    """Of two shapes, the first one's size counts where it is not 1. The shorter one gets ones in front."""
    shapes = [node.long(node.x(name)) for name in ("a", "b")]
    counts = [node.sizes(shape, 0)[0] for shape in shapes]
    node.check_room(max(counts))
    for index, shape in enumerate(shapes):
        missing = max(counts) - counts[index]
        if missing:
            shapes[index] = node("Concat", node.ints(*(1,) * missing), shape, axis=0)
    one = node.constant(1, np.int64)
    return node.int32(node("Where", node("Equal", shapes[0], one), shapes[1], shapes[0]))


@adapter("ReduceVariance")
def _reduce_variance(node: SentisNode) -> Value:
    """The sum of squares of x less its mean, over the count less the correction."""
    x, axes, keepdims = node.x("x"), node.optional("axes"), node["keepdims"]
    if node["noop_with_empty_axes"] and (axes is None or not node.wholes("axes")):
        raise NotImplementedError("the variance of no axes is not supported")
    mean = node("ReduceMean", x, axes, keepdims=1)
    apart = node("Sub", x, mean)
    total = node("ReduceSum", node("Mul", apart, apart), axes, keepdims=keepdims)
    count = node("Cast", node("Div", node("Size", x), node("Size", mean)), to=DataType.FLOAT32)
    left = node("Max", node("Sub", count, node.number(node["correction"], count)), node.number(0, count))
    return node("Div", total, left)
