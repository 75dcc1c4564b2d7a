"""Operators with indices: elements are looked up, put somewhere, counted or compared with their place."""

from __future__ import annotations

import numpy as np

from perframe.importers.litert.node import LiteRTNode
from perframe.importers.litert.table import operator
from perframe.ir import Value
from perframe.tensor import DataType

SEGMENTS = {"MAX": "max", "MIN": "min", "PROD": "mul", "SUM": "add"}


@operator("GATHER", moves=True)
def _gather(node: LiteRTNode) -> Value:
    x, indices = node.x(0), node.long(node.raw(1))
    axis, batch = int(node.option("Axis")) % node.rank(x), int(node.option("BatchDims"))
    batch %= max(node.rank(indices), 1)
    if not batch:
        return node("Gather", x, indices, axis=axis)
    rank = node.rank(x)  # the axis comes next to the batches, and the dims between them go behind the indices
    moved = node("Transpose", x, perm=(*range(batch), axis, *range(batch, axis), *range(axis + 1, rank)))
    pairs = node("Unsqueeze", indices, node.ints(-1))
    made = node("GatherND", moved, pairs, batch_dims=batch)
    found, between = node.rank(indices) - batch, axis - batch
    order = (
        *range(batch),
        *range(batch + found, batch + found + between),
        *range(batch, batch + found),
        *range(batch + found + between, node.rank(made)),
    )
    return made if not between else node("Transpose", made, perm=order)


@operator("GATHER_ND", moves=True)
def _gather_nd(node: LiteRTNode) -> Value:
    return node("GatherND", node.x(0), node.long(node.raw(1)))


@operator("EMBEDDING_LOOKUP")
def _embedding_lookup(node: LiteRTNode) -> Value:
    return node("Gather", node.x(1), node.long(node.raw(0)))


@operator("SCATTER_ND")
def _scatter_nd(node: LiteRTNode) -> Value:
    updates = node.x(1)
    zeros = node("ConstantOfShape", node.long(node.raw(2)), value=np.zeros(1, updates.spec.dtype.numpy))
    return node("ScatterND", zeros, node.long(node.raw(0)), updates, reduction="add")


@operator("SPARSE_TO_DENSE")
def _sparse_to_dense(node: LiteRTNode) -> Value:
    """Indices are one number, a list of them, or one row of indices a value."""
    indices, values = node.long(node.raw(0)), node.x(2)
    rank = node.rank(indices)
    if rank < 2:
        indices = node("Reshape", indices, node.ints(-1, 1))
    (count,) = node.sizes(indices, 0)
    if node.rank(values) == 0:
        values = node("Expand", values, node.ints(count))
    whole = node("Expand", node("Reshape", node.x(3), node.ints()), node.long(node.raw(1)))
    return node("ScatterND", whole, indices, values)


@operator("DYNAMIC_UPDATE_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE")
def _dynamic_update_slice(node: LiteRTNode) -> Value:
    """The update is put where it begins, or as near as it fits."""
    x, update = node.x(0), node.x(1)
    rank = node.rank(x)
    starts = [node.raw(index) for index in range(2, len(node.operation.inputs))]
    if len(starts) > 1:
        starts = [node("Concat", *(node("Reshape", start, node.ints(1)) for start in starts), axis=0)]
    sizes, whole = node.sizes(update, *range(rank)), node.sizes(x, *range(rank))
    last = node.ints(*(all_ - size for all_, size in zip(whole, sizes, strict=True)))
    begin = node("Min", node("Max", node.long(starts[0]), node.ints(*(0 for _ in range(rank)))), last)
    node.check_room(*sizes, 2 * rank)
    grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).astype(np.int64)
    return node("ScatterND", x, node("Add", node.constant(grid, np.int64), begin), update)


@operator("STABLEHLO_DYNAMIC_SLICE")
def _dynamic_slice(node: LiteRTNode) -> Value:
    x, sizes = node.x(0), [int(size) for size in node.option("SliceSizes", ())]
    rank = node.rank(x)
    last = [all_ - size for all_, size in zip(node.sizes(x, *range(rank)), sizes, strict=True)]
    starts = [node("Reshape", node.long(node.raw(index)), node.ints(1)) for index in range(1, 1 + rank)]
    begin = node("Concat", *starts, axis=0) if rank > 1 else starts[0]
    begin = node("Min", node("Max", begin, node.ints(*(0 for _ in sizes))), node.ints(*last))
    return node("Slice", x, begin, node("Add", begin, node.ints(*sizes)))


@operator("ONE_HOT")
def _one_hot(node: LiteRTNode) -> Value:
    """An index outside of the depth gives a row without a one."""
    indices, axis = node.long(node.raw(0)), int(node.option("Axis", -1))
    depth = node("Reshape", node.long(node.raw(1)), node.ints())
    rank = node.rank(indices) + 1
    axis %= rank
    places = node("Range", node.constant(0, np.int64), depth, node.constant(1, np.int64))
    if rank - 1 - axis:
        places = node("Unsqueeze", places, node.ints(*range(1, rank - axis)))
    here = node("Equal", node("Unsqueeze", indices, node.ints(axis)), places)
    return node("Where", here, node.x(2), node.x(3))


@operator("WHERE")
def _where(node: LiteRTNode) -> Value:
    return node("Transpose", node("NonZero", node.x(0)), perm=(1, 0))


@operator("UNIQUE")
def _unique(node: LiteRTNode) -> list[Value]:
    values, _, places, _ = node.several(4, "Unique", node.x(0), sorted=0)
    return [values, places]


@operator("BUCKETIZE")
def _bucketize(node: LiteRTNode) -> Value:
    """The number of boundaries that a value has reached."""
    x = node.x(0)
    bounds = node.constant(node.option("Boundaries", ()), np.float32)
    reached = node("GreaterOrEqual", node("Unsqueeze", node.cast(x, DataType.FLOAT32), node.ints(-1)), bounds)
    return node("ReduceSum", node.cast(reached, DataType.INT32), node.ints(-1), keepdims=0)


@operator("SEGMENT_SUM")
def _segment_sum(node: LiteRTNode) -> Value:
    """Segments are numbered in ascending order; the last number decides how many there are."""
    ids = node.value(1)
    if ids.size and ids.min() < 0:
        raise ValueError("a segment has a negative number")
    return _segments(node, node.ints(int(ids.max(initial=-1)) + 1), "add")


@operator(*(f"UNSORTED_SEGMENT_{kind}" for kind in SEGMENTS))
def _unsorted_segments(node: LiteRTNode) -> Value:
    count = node("Reshape", node.long(node.raw(2)), node.ints(1))
    return _segments(node, count, SEGMENTS[node.operation.code.rpartition("_")[2]])


def _segments(node: LiteRTNode, count: Value, reduction: str) -> Value:
    """Combine the rows of each segment. A spare row takes those whose number is negative."""
    x, ids = node.x(0), node.long(node.raw(1))
    dtype, rank, places = x.spec.dtype.numpy, node.rank(x), node.rank(ids)
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    begin = {"add": 0, "mul": 1, "max": limits.min, "min": limits.max}[reduction]
    one, zero = node.ints(1), node.constant(0, np.int64)
    ids = node("Where", node("Less", ids, zero), count, ids)
    shape = node("Add", count, one)
    if rank > places:
        shape = node("Concat", shape, node("Shape", x, start=places), axis=0)
    whole = node("ConstantOfShape", shape, value=np.full(1, begin, dtype))
    made = node("ScatterND", whole, node("Unsqueeze", ids, node.ints(-1)), x, reduction=reduction)
    return node("Slice", made, node.ints(0), count, node.ints(0))


@operator("MATRIX_DIAG")
def _matrix_diag(node: LiteRTNode) -> Value:
    x = node.x(0)
    (size,) = node.sizes(x, -1)
    node.check_room(size, size)
    eye = node.constant(np.eye(size, dtype=bool), np.bool_)
    return node("Where", eye, node("Unsqueeze", x, node.ints(-1)), node.number(0, x))


@operator("MATRIX_SET_DIAG")
def _matrix_set_diag(node: LiteRTNode) -> Value:
    x = node.x(0)
    rows, columns = node.sizes(x, -2, -1)
    node.check_room(rows, columns)
    eye = node.constant(np.eye(rows, columns, dtype=bool), np.bool_)
    along = -1 if rows <= columns else -2  # the diagonal has as many entries as the shorter side
    return node("Where", eye, node("Unsqueeze", node.x(1), node.ints(along)), x)


@operator("RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM")
def _random(node: LiteRTNode) -> Value:
    """Numbers depend on the seed, and differ from those of other runtimes."""
    name = "RandomNormalLike" if node.operation.code == "RANDOM_STANDARD_NORMAL" else "RandomUniformLike"
    like = node("ConstantOfShape", node.long(node.raw(0)), value=np.zeros(1, np.float32))
    return node(name, like, **_seed(node))


def _seed(node: LiteRTNode) -> dict[str, float]:
    first, second = (int(node.option(name)) for name in ("Seed", "Seed2"))
    return {"seed": float(first * 31 + second)} if first or second else {}


@operator("MULTINOMIAL")
def _multinomial(node: LiteRTNode) -> Value:
    (count,) = node.axes(1)
    return node("Multinomial", node.x(0), sample_size=count, dtype=node.output_dtype(), **_seed(node))
