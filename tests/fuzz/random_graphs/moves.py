"""Blocks that move data, compute shapes, or have bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from fuzz.random_graphs.drawing import FLOAT, Drawing, Refused, info
from fuzz.random_graphs.families import Block


def transpose(g: Drawing) -> Any:
    """A permutation, often a common one."""
    x = g.floats(2, 3, 4, 5)
    rank = g.rank(x)
    perm = [int(a) for a in g.rng.permutation(rank)]
    if rank == 4 and g.chance(0.6):
        perm = g.one([0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 1, 3], [0, 1, 3, 2])
    return g("Transpose", x, perm=perm if g.chance(0.9) else None)


def reshape(g: Drawing) -> Any:
    """Another shape for the same elements."""
    x = g.floats()
    shape, kind = list(g.shape(x)), g.int(0, 4)
    if kind == 0:
        return g("Flatten", x, axis=g.int(-len(shape), len(shape)))
    if kind == 1:
        at = g.int(-len(shape) - 1, len(shape))
        return g("Unsqueeze", x, g.ints(at))
    if kind == 2:
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        if not ones:
            raise Refused
        return g("Squeeze", x, g.ints(g.one(*ones)))
    if kind == 3 and len(shape) > 1:  # two dims become one
        at = g.int(0, len(shape) - 2)
        head = [0] * at if g.chance(0.5) else shape[:at]
        return g("Reshape", x, g.ints(*head, -1, *shape[at + 2 :]))
    total = int(np.prod(shape))
    first = g.one(*[d for d in range(1, min(total, 12) + 1) if total % d == 0])
    return g("Reshape", x, g.ints(first, -1))


def cut(g: Drawing) -> Any:
    """A slice, or a split whose outputs may lack readers."""
    x = g.floats()
    rank = g.rank(x)
    if not rank:
        raise Refused
    axis = g.int(-rank, rank - 1)
    size = g.shape(x)[axis]
    if g.chance(0.5) and size > 1:
        return pieces(g, x, axis, size)
    start, end = sorted((g.int(0, size - 1), g.int(1, size)))
    step = g.one(1, 1, 1, 2, -1)
    if step < 0:
        start, end = size - 1, -size - 1
    elif start == end:
        end += 1
    names = [g.ints(start), g.ints(g.one(end, end, 2**31 - 1) if step > 0 else end), g.ints(axis)]
    return g("Slice", x, *names, *([g.ints(step)] if step != 1 or g.chance(0.3) else []))


def pieces(g: Drawing, x: str, axis: int, size: int) -> Any:
    """All pieces of an axis: by a Split, or by slices next to each other."""
    first = g.int(1, size - 1)
    if g.chance(0.5):
        made = g("Split", x, g.ints(first, size - first), count=2, axis=axis)
        if g.chance(0.3):
            g(g.one("Identity", "Dropout"), made[0])
        return made
    one = g("Slice", x, g.ints(0), g.ints(first), g.ints(axis))
    start = first if g.chance(0.8) else max(first - 1, 0)
    other = g("Slice", x, g.ints(start), g.ints(g.one(size, 2**31 - 1)), g.ints(axis))
    return g("Concat", other, one, axis=axis) if g.chance(0.3) else None


def join(g: Drawing) -> Any:
    """Values behind each other."""
    x = g.floats(1, 2, 3, 4)
    axis = g.int(0, g.rank(x) - 1)
    shape = g.shape(x)

    def suits(y: Any) -> bool:
        return (
            y.dtype == FLOAT
            and y.ndim == len(shape)
            and y.shape[:axis] == shape[:axis]
            and y.shape[axis + 1 :] == shape[axis + 1 :]
        )

    names = [x] + [g.pick(suits) for _ in range(g.int(0, 2))]
    if g.chance(0.3):
        names.append(g.weights(*shape[:axis], g.int(1, 3), *shape[axis + 1 :]))
    return g("Concat", *names, axis=axis if g.chance(0.6) else axis - len(shape))


def pad(g: Drawing) -> Any:
    """Values around a value."""
    x = g.floats(1, 2, 3, 4)
    rank, mode = g.rank(x), g.one("constant", "constant", "constant", "edge", "reflect")
    sizes = [g.one(0, 0, 1, 2) for _ in range(2 * rank)]
    if mode == "reflect":
        sizes = [min(p, s - 1) for p, s in zip(sizes, g.shape(x) * 2, strict=True)]
    elif mode == "constant" and g.chance(0.1):
        sizes[-1] = -1
    names = [g.ints(*sizes)]
    if mode == "constant" and g.chance(0.5):
        names.append(g.plain(g.one(0.0, 1.0, -2.5)))
    return g("Pad", x, *names, mode=mode)


def repeat(g: Drawing) -> Any:
    """Copies of a value."""
    x = g.floats(1, 2, 3, 4)
    shape = g.shape(x)
    if g.chance(0.5):
        return g("Tile", x, g.ints(*(g.one(1, 1, 2) for _ in shape)))
    wider = [g.int(2, 3) if size == 1 and g.chance(0.7) else g.one(1, size) for size in shape]
    return g("Expand", x, g.ints(*([2] if g.chance(0.2) else []), *wider))


def blocks_of_pixels(g: Drawing) -> Any:
    """Channels become pixels, or pixels channels."""
    if g.chance(0.5):
        x = g.input(g.normal(1, 4 * g.int(1, 3), g.int(1, 4), g.int(1, 4)))
        return g("DepthToSpace", x, blocksize=2, mode=g.one(None, "CRD", "DCR"))
    x = g.input(g.normal(1, g.int(1, 3), 2 * g.int(1, 3), 4))
    return g("SpaceToDepth", x, blocksize=2)


def gather(g: Drawing) -> Any:
    """Rows by constant or computed indices."""
    x = g.floats(1, 2, 3, 4)
    rank = g.rank(x)
    axis = g.int(-rank, rank - 1)
    size = g.shape(x)[axis]
    shape = g.one((), (1,), (2,), (3,), (2, 2))
    index = g.rng.integers(-size, size, shape)
    names = (
        g.constant(index, g.one(np.int64, np.int64, np.int32))
        if g.chance(0.7)
        else g.input(np.asarray(index, np.int64))
    )
    if g.chance(0.2):
        shape = list(g.shape(x))
        shape[axis] = g.int(1, 3)
        return g("GatherElements", x, g.constant(g.rng.integers(0, size, shape), np.int64), axis=axis)
    if g.chance(0.15):
        return g("GatherND", x, g.constant(g.rng.integers(0, min(g.shape(x)[:1]), (3, 1)), np.int64))
    return g("Gather", x, names, axis=axis)


def scatter(g: Drawing) -> Any:
    """Values written into a value, each place once."""
    x = g.floats(1, 2, 3)
    size, *rest = g.shape(x)
    count = g.int(1, size)
    rows = g.rng.permutation(size)[:count]
    if g.chance(0.5):
        return g("ScatterND", x, g.constant(rows.reshape(-1, 1), np.int64), g.weights(count, *rest))
    index = np.broadcast_to(rows.reshape(-1, *[1] * len(rest)), (count, *rest))
    reduction = g.one(None, None, "add", "max") if g.opset >= 18 else None
    return g("ScatterElements", x, g.constant(index.copy(), np.int64), g.weights(count, *rest), reduction=reduction)


def shape_arithmetic(g: Drawing) -> Any:
    """A Reshape or an Expand to a shape that the graph computes."""
    x = g.floats(2, 3, 4)
    rank = g.rank(x)
    dims, kind = g("Shape", x), g.int(0, 4)
    at = g.int(0, rank - 1)
    one = g("Gather", dims, g.constant(at, np.int64))
    if kind == 0:
        row = g("Unsqueeze", one, g.ints(0))
        return g("Reshape", x, g("Concat", row, g.ints(-1), axis=0))
    if kind == 1:
        return g("Reshape", x, g("Concat", g("Slice", dims, g.ints(0), g.ints(1), g.ints(0)), g.ints(-1), axis=0))
    if kind == 2:
        filled = g("ConstantOfShape", dims, value=helper.make_tensor("v", TensorProto.FLOAT, [1], [g.one(0.0, 1.5)]))
        return g(g.one("Add", "Mul"), x, filled)
    if kind == 3:
        last = g("Gather", dims, g.constant(rank - 1, np.int64))
        steps = g("Cast", g("Range", g.constant(0, np.int64), last, g.constant(1, np.int64)), to=TensorProto.FLOAT)
        return g("Add", x, steps)
    number = g("Cast", one, to=TensorProto.FLOAT)
    return g(g.one("Mul", "Div", "Add"), x, g("Sqrt", number) if g.chance(0.5) else number)


def copies(g: Drawing) -> Any:
    """A layer that does nothing."""
    x = g.pick(lambda v: isinstance(v, np.ndarray))
    op = g.one("Identity", "Dropout", "Reshape", "Transpose", "Cast", "Slice", "Concat", "Expand")
    shape = g.shape(x)
    if op == "Reshape":
        return g(op, x, g.ints(*shape))
    if op == "Transpose" and shape:
        return g(op, x, perm=list(range(len(shape))))
    if op == "Cast":
        return g(op, x, to=helper.np_dtype_to_tensor_dtype(g.values[x].dtype))
    if op == "Slice" and shape:
        return g(op, x, g.ints(0), g.ints(2**31 - 1), g.ints(0))
    if op == "Concat" and shape:
        return g(op, x, axis=0)
    if op == "Expand":
        return g(op, x, g.ints(*[1] * len(shape)))
    return g("Identity", x)


def twins(g: Drawing) -> None:
    """The same layer twice, which may become one."""
    x = g.floats()
    op = g.one("Relu", "Neg", "Sigmoid", "Shape")
    if op == "Shape":
        g("Reshape", x, g("Shape", x))
        return
    one, other = g(op, x), g(op, x)
    g(g.one("Add", "Sub", "Mul"), one, other)


def branch(g: Drawing) -> Any:
    """An If whose condition is a constant, an input or computed."""
    x = g.floats()
    kind = g.int(0, 2)
    if kind == 0:
        condition = g.constant(np.array(g.chance(0.5)))
    elif kind == 1:
        condition = g.input(np.array(g.chance(0.5)))
    else:
        condition = g(
            "Greater",
            g("Gather", g("Shape", x), g.constant(0, np.int64)) if g.rank(x) else g("Size", x),
            g.constant(2, np.int64),
        )
    bodies = []
    for _ in range(2):
        first, second = g.name("b"), g.name("b")
        ops = [helper.make_node(g.one("Relu", "Neg", "Identity"), [x], [first], g.name("n"))]
        if g.chance(0.6):
            ops.append(helper.make_node(g.one("Abs", "Sigmoid", "Identity"), [first], [second], g.name("n")))
        last = ops[-1].output[0]
        bodies.append(helper.make_graph(ops, g.name("body"), [], [info(last, g.values[x], [None] * g.rank(x))]))
    return g("If", condition, then_branch=bodies[0], else_branch=bodies[1])


def loop(g: Drawing) -> Any:
    """A loop that carries a value and gives rows."""
    x = g.floats(1, 2, 3)
    counter, going, state, on, after, row = (g.name("l") for _ in range(6))
    nodes = [
        helper.make_node("Identity", [going], [on], g.name("n")),
        helper.make_node(g.one("Mul", "Add", "Max"), [state, x], [after], g.name("n")),
        helper.make_node(g.one("Relu", "Neg", "Identity"), [after], [row], g.name("n")),
    ]
    array = g.values[x]
    given = [info(counter, np.array(0)), info(going, np.array(True)), info(state, array, [None] * array.ndim)]
    made = [info(on, np.array(True)), info(after, array, [None] * array.ndim), info(row, array, [None] * array.ndim)]
    trips = g.constant(np.array(g.int(1, 3))) if g.chance(0.6) else g.input(np.array(g.int(1, 3)))
    return g("Loop", trips, "", x, count=2, body=helper.make_graph(nodes, g.name("body"), given, made))


def einsum(g: Drawing) -> Any:
    """A product that is spelled as an Einsum."""
    x = g.fresh(2, 3)
    letters = "abc"[: g.rank(x)]
    depth = g.shape(x)[-1]
    y = g.weights(depth, g.int(1, 4)) if g.chance(0.5) else g.input(g.normal(depth, g.int(1, 4)))
    target = letters[:-1] + "z" if g.chance(0.7) else "z" + letters[:-1]
    return g("Einsum", x, y, equation=f"{letters},{letters[-1]}z->{target}")


def sums(g: Drawing) -> Any:
    """Operators of many operands."""
    x = g.floats()
    shape = g.shape(x)
    others = [g.pick(lambda v: v.dtype == FLOAT and v.shape == shape) for _ in range(g.int(0, 2))]
    return g(g.one("Sum", "Mean", "Max", "Min"), x, *others)


def triangle(g: Drawing) -> Any:
    """A triangle of a matrix, or a row of one-hot numbers."""
    if g.chance(0.5):
        return g(
            "Trilu", g.floats(2, 3), *([g.constant(g.int(-1, 1), np.int64)] if g.chance(0.5) else []), upper=g.int(0, 1)
        )
    index = g.pick(lambda v: v.dtype == np.int64 and v.size > 0 and v.ndim < 3)
    return g("OneHot", index, g.plain(4, np.int64), g.constant([0, 1], FLOAT))


MOVES: tuple[Block, ...] = (
    *(transpose, transpose, reshape, reshape, reshape, cut, cut, join, pad, repeat, blocks_of_pixels, gather),
    *(scatter, shape_arithmetic, shape_arithmetic, copies, copies, twins, branch, loop, einsum, sums, triangle),
)
