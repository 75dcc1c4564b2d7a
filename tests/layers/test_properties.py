"""Operators over drawn shapes and attributes: what works on elements, moves, gathers, scatters, reduces and selects.

One strategy a family draws cases; NumPy says what is right, or ONNX's evaluator where it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layers.runner import Array, Case, Draw, check, ints

Shape = tuple[int, ...]
Random = Callable[[st.SearchStrategy[Any]], Any]

BOUNDED = settings(
    deadline=None,
    max_examples=12,
    derandomize=True,
    # the fixture is the same context for every example; shaders take their time to compile
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FLAG = st.integers(0, 1)
NUMBERS = st.sampled_from([np.float32, np.int32, np.int64])
ANY = st.sampled_from([np.float32, np.int32, np.int64, bool, np.uint8, np.float64])


def shapes(least: int = 0, most: int = 6, smallest: int = 0) -> st.SearchStrategy[Shape]:
    """Dims of 0 (unless said), 1 and primes, smaller where there are many."""
    dims = [dim for dim in (1, 2, 3, 5, 7, 13, 0) if dim >= smallest]
    drawn = st.lists(st.sampled_from(dims), min_size=least, max_size=most)
    return drawn.map(lambda shape: tuple(min(dim, 13 if len(shape) < 4 else 3) for dim in shape))


def axis_of(random: Random, rank: int, first: int = 0) -> int:
    """An axis counted from either end."""
    axis: int = random(st.integers(first, rank - 1))
    return axis - rank if random(st.booleans()) else axis


def axes_of(random: Random, rank: int, least: int = 0) -> list[int]:
    """Different axes in any order, some counted from the end."""
    order = random(st.permutations(range(rank)))[: random(st.integers(least, rank))]
    return [axis - rank if random(st.booleans()) else axis for axis in order]


def joined(random: Random, count: int) -> list[Shape]:
    """Shapes that broadcast together: each leaves out leading dims, and has 1 in the place of some others."""
    whole = random(shapes())
    kept = [random(st.integers(0, len(whole))) for _ in range(count)]
    return [tuple(1 if random(st.booleans()) else dim for dim in whole[len(whole) - keep :]) for keep in kept]


def draws(random: Random) -> Draw:
    return Draw(random(st.integers(0, 99)))


VARIADIC: dict[str, Any] = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Mean": np.mean}


@st.composite
def elementwise(random: Random) -> Case:
    draw, kind = draws(random), random(st.sampled_from(["unary", "binary", "logic", "variadic", "Where", "Clip"]))
    dtype = random(NUMBERS)
    if kind == "unary":
        op = random(st.sampled_from(["Abs", "Neg", "Relu", "Sign", "Sqrt", "Tanh", "Sigmoid", "Erf", "Floor", "Exp"]))
        whole = op in ("Abs", "Neg", "Relu", "Sign")
        low = 0 if op == "Sqrt" else -9
        return Case("", op, [draw(*random(shapes()), low=low, high=9, dtype=dtype if whole else np.float32)])
    if kind == "binary":
        op = random(st.sampled_from(["Add", "Sub", "Mul", "Div", "Mod", "Equal", "Less", "GreaterOrEqual", "Pow"]))
        first, second = joined(random, 2)
        low = 1 if op in ("Div", "Mod", "Pow") else -3
        given = [draw(*shape, low=low, high=5, dtype=dtype) for shape in (first, second)]
        return Case("", op, given, {"fmod": 1} if op == "Mod" and dtype is np.float32 else {}, rtol=1e-4)
    if kind == "logic":
        op = random(st.sampled_from(["And", "Or", "Xor", "Equal"]))
        return Case("", op, [draw(*shape, dtype=bool) for shape in joined(random, 2)])
    if kind == "variadic":
        op = random(st.sampled_from(["Max", "Min", "Sum", "Mean"]))
        dtype = np.float32 if op in ("Sum", "Mean") else dtype
        given = [draw(*shape, high=9, dtype=dtype) for shape in joined(random, random(st.integers(1, 4)))]
        return Case("", op, given, reference=lambda *x: VARIADIC[op](np.stack(np.broadcast_arrays(*x)), axis=0))
    if kind == "Where":
        mask, *rest = joined(random, 3)
        return Case("", "Where", [draw(*mask, dtype=bool), *(draw(*s, high=9, dtype=dtype) for s in rest)])
    bounds = [np.array(bound, dtype) if random(st.booleans()) else None for bound in (-1, 2)]
    return Case("", "Clip", [draw(*random(shapes()), low=-9, high=9, dtype=dtype), *bounds])


REDUCTIONS: dict[str, Any] = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMax": lambda x, **how: np.max(x, initial=-math.inf, **how),
    "ReduceMin": lambda x, **how: np.min(x, initial=math.inf, **how),
    "ReduceMean": np.mean,
    "ReduceL1": lambda x, **how: np.sum(np.abs(x), **how),
    "ReduceL2": lambda x, **how: np.sqrt(np.sum(x * x, **how)),
    "ReduceSumSquare": lambda x, **how: np.sum(x * x, **how),
    "ReduceLogSum": lambda x, **how: np.log(np.sum(x, **how)),
    "ReduceLogSumExp": lambda x, **how: np.log(np.sum(np.exp(x), **how)),
}


@st.composite
def reduce(random: Random) -> Case:
    op = random(st.sampled_from(sorted(REDUCTIONS)))
    shape = random(shapes(smallest=1 if op in ("ReduceMean", "ReduceLogSum", "ReduceLogSumExp") else 0))
    axes = random(st.sampled_from([None, axes_of(random, len(shape))]))
    keepdims, noop = random(FLAG), random(FLAG)
    over = tuple(axes or ()) if axes or noop else None

    def reference(x: Array, *_: Array) -> Array:
        return np.asarray(REDUCTIONS[op](x, axis=over, keepdims=bool(keepdims)), x.dtype)

    given = [draws(random)(*shape, low=0.7, high=1.4), *([] if axes is None else [ints(*axes)])]
    return Case("", op, given, {"keepdims": keepdims, "noop_with_empty_axes": noop}, reference=reference, rtol=1e-4)


@st.composite
def move(random: Random) -> Case:
    op = random(st.sampled_from(["Transpose", "Slice", "Expand", "Tile", "Split", "Flatten", "Squeeze", "Unsqueeze"]))
    least = 1 if op in ("Slice", "Split") else 0
    shape = random(shapes(least))
    rank, dtype = len(shape), random(ANY)
    if op == "Squeeze":
        shape = tuple(1 if random(st.booleans()) else dim for dim in shape)
    x = draws(random)(*shape, low=-9, high=9, dtype=dtype)
    if op == "Transpose":
        return Case(
            "", op, [x], {"perm": random(st.permutations(range(rank)))} if rank and random(st.booleans()) else {}
        )
    if op == "Slice":
        axes = axes_of(random, rank, 1)
        bound = st.one_of(st.integers(-9, 9), st.sampled_from([-(2**63), 2**63 - 1, -(2**31), 2**31 - 1]))
        step = st.sampled_from([-5, -2, -1, 1, 2, 3, 2**31 - 1])
        starts, ends, steps = ([random(kind) for _ in axes] for kind in (bound, bound, step))
        return Case("", op, [x, ints(*starts), ints(*ends), ints(*axes), ints(*steps)])
    if op == "Expand":
        target, fixed = joined(random, 2)
        x = draws(random)(*fixed, high=9, dtype=dtype)
        return Case("", op, [x, ints(*target)], reference=lambda x, s: x * np.ones(s, x.dtype))
    if op == "Tile":
        repeats = [random(st.sampled_from([1, 2, 0])) for _ in shape]
        return Case("", op, [x, ints(*repeats)], reference=np.tile)
    if op == "Split":
        axis = axis_of(random, rank)
        if random(st.booleans()):
            count = random(st.integers(1, max(1, shape[axis])))
            piece = -(-shape[axis] // count)
            ends = [min(shape[axis], piece * i) for i in range(count + 1)]
            given, more = [x], {"num_outputs": count}
        else:
            cuts = sorted(random(st.lists(st.integers(0, shape[axis]), max_size=3)))
            ends, more = [0, *cuts, shape[axis]], {}
            given = [x, ints(*np.diff(ends))]
        return Case(
            "",
            op,
            given,
            {"axis": axis, **more},
            outputs=len(ends) - 1,
            reference=lambda x, *_: np.split(x, ends[1:-1], axis),
        )
    if op == "Flatten":
        axis = random(st.integers(-rank, rank))
        return Case(
            "",
            op,
            [x],
            {"axis": axis},
            reference=lambda x: x.reshape(math.prod(shape[:axis]), math.prod(shape[axis:] if axis else shape)),
        )
    if op == "Squeeze":
        ones = [axis for axis, dim in enumerate(shape) if dim == 1 and random(st.booleans())]
        return Case("", op, [x, ints(*ones)], reference=lambda x, _: x.squeeze(tuple(ones)))
    axes = axes_of(random, rank + 2)[:2]
    return Case("", op, [x, ints(*axes)], reference=lambda x, _: np.expand_dims(x, tuple(axes)))


@st.composite
def blocks(random: Random) -> Case:
    n, c, h, w = (random(st.sampled_from([1, 2, 3, 0])) for _ in range(4))
    size, x = random(st.integers(1, 3)), draws(random)
    if random(st.booleans()):
        return Case("", "SpaceToDepth", [x(n, c, h * size, w * size)], {"blocksize": size})
    mode = random(st.sampled_from(["DCR", "CRD"]))
    return Case("", "DepthToSpace", [x(n, c * size * size, h, w)], {"blocksize": size, "mode": mode})


@st.composite
def pad(random: Random) -> Case:
    mode = random(st.sampled_from(["constant", "edge", "reflect", "wrap"]))
    shape = random(shapes(1, 6, smallest=0 if mode == "constant" else 1))
    axes = axes_of(random, len(shape))
    widths = {axis % len(shape): (0, 0) for axis in range(len(shape))}
    for axis in axes:
        most = min(4, shape[axis] - 1) if mode == "reflect" else 3
        least = -(shape[axis] // 2) if mode == "constant" else 0
        widths[axis % len(shape)] = (random(st.integers(least, most)), random(st.integers(least, most)))
    dtype = random(ANY)

    def reference(x: Array, *_: Any) -> Array:
        more = {"constant_values": dtype(1)} if mode == "constant" else {}
        made = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in widths.values()], mode=mode, **more)
        return made[
            tuple(slice(max(-a, 0), d - max(-b, 0)) for (a, b), d in zip(widths.values(), made.shape, strict=True))
        ]

    pads = [widths[axis % len(shape)][side] for side in (0, 1) for axis in axes]
    value = np.array(1, dtype) if mode == "constant" else None
    given = [draws(random)(*shape, low=-9, high=9, dtype=dtype), ints(*pads), value, ints(*axes)]
    return Case("", "Pad", given, {"mode": mode}, reference=reference)


@st.composite
def join(random: Random) -> Case:
    shape, draw, dtype = random(shapes(1)), draws(random), random(ANY)
    axis = axis_of(random, len(shape))
    lengths = random(st.lists(st.sampled_from([1, 2, 3, 0]), min_size=1, max_size=5))
    at = axis % len(shape)
    given = [draw(*shape[:at], length, *shape[at + 1 :], high=9, dtype=dtype) for length in lengths]
    return Case("", "Concat", given, {"axis": axis}, reference=lambda *x: np.concatenate(x, axis))


def indices(draw: Draw, shape: Sequence[int], size: int) -> Array:
    """Indices into a dim of `size`, counted from either end."""
    return draw(*shape, low=-size, high=size - 1, dtype=np.int64)


@st.composite
def gather(random: Random) -> Case:
    x, draw = draws(random)(*(shape := random(shapes(1, smallest=1))), high=9, dtype=random(ANY)), draws(random)
    axis = axis_of(random, len(shape))
    at = indices(draw, random(shapes(0, 6 - len(shape) + 1)), shape[axis]).astype(random(st.sampled_from("il")))
    return Case("", "Gather", [x, at], {"axis": axis}, constants=[], reference=lambda x, at: np.take(x, at, axis))


@st.composite
def gather_elements(random: Random) -> Case:
    x, draw = draws(random)(*(shape := random(shapes(1, smallest=1))), high=9, dtype=random(ANY)), draws(random)
    axis = axis_of(random, len(shape))
    dims = [random(st.integers(0, dim)) for dim in shape]
    dims[axis] = random(st.integers(0, 4))

    def reference(x: Array, at: Array) -> Array:
        part = [slice(dim) for dim in dims]
        part[axis] = slice(None)
        return np.take_along_axis(x[tuple(part)], at, axis)

    at = indices(draw, dims, shape[axis])
    return Case("", "GatherElements", [x, at], {"axis": axis}, constants=[], reference=reference)


@st.composite
def gather_nd(random: Random) -> Case:
    shape, draw = random(shapes(1, smallest=1)), draws(random)
    batch = random(st.integers(0, len(shape) - 1))
    depth = random(st.integers(1, len(shape) - batch))
    lead = shape[:batch] + random(shapes(0, 2))
    at = np.stack([indices(draw, lead, size) for size in shape[batch : batch + depth]], -1)

    def reference(x: Array, at: Array) -> Array:
        rows = x.reshape(-1, *shape[batch:])
        places = at.reshape(len(rows), *at.shape[batch:])
        found = [row[tuple(np.moveaxis(place, -1, 0))] for row, place in zip(rows, places, strict=True)]
        return np.stack(found).reshape(lead + shape[batch + depth :])

    x = draw(*shape, high=9, dtype=random(ANY))
    return Case("", "GatherND", [x, at], {"batch_dims": batch}, constants=[], reference=reference)


COMBINE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scattered(x: Array, places: Any, updates: Any, reduction: str) -> Array:
    """One update after the other."""
    made = x.copy()
    for place, update in zip(places, updates, strict=True):
        made[place] = COMBINE[reduction](made[place], update) if reduction != "none" else update
    return made


@st.composite
def scatter_elements(random: Random) -> Case:
    shape, draw = random(shapes(1, smallest=1)), draws(random)
    axis, dtype = axis_of(random, len(shape)), random(NUMBERS)
    reduction = random(st.sampled_from(["none", *COMBINE]))
    dims = [random(st.integers(0, dim)) for dim in shape]
    at = indices(draw, dims, shape[axis])
    if reduction == "none":  # which one stays is not said where two go to one place
        order = (np.argsort(draw(shape[axis])) - shape[axis])[: dims[axis]]
        at = np.zeros(dims, np.int64) + np.expand_dims(order, [i for i in range(len(dims)) if i != axis % len(dims)])

    def reference(x: Array, at: Array, updates: Array) -> Array:
        places = []
        for index in np.ndindex(*at.shape):
            place = list(index)
            place[axis] = at[index]
            places.append(tuple(place))
        return scattered(x, places, updates.reshape(-1), reduction)

    given = [draw(*shape, high=9, dtype=dtype), at, draw(*dims, high=3, dtype=dtype)]
    attributes = {"axis": axis, "reduction": reduction}
    return Case("", "ScatterElements", given, attributes, constants=[], reference=reference, rtol=1e-4)


@st.composite
def scatter_nd(random: Random) -> Case:
    shape, draw, dtype = random(shapes(1, smallest=1)), draws(random), random(NUMBERS)
    depth = random(st.integers(1, len(shape)))
    reduction = random(st.sampled_from(["none", *COMBINE]))
    size = math.prod(shape[:depth])
    lead = random(shapes(1, 2))
    while reduction == "none" and math.prod(lead) > size:
        lead = (min(size, lead[0]),)
    flat = indices(draw, lead, size) if reduction != "none" else np.argsort(draw(size))[: math.prod(lead)].reshape(lead)
    at = np.stack(np.unravel_index(flat % size, shape[:depth]), -1).astype(np.int64)

    def reference(x: Array, at: Array, updates: Array) -> Array:
        places = [tuple(place) for place in at.reshape(-1, depth)]
        return scattered(x, places, updates.reshape(len(places), *shape[depth:]), reduction)

    given = [draw(*shape, high=9, dtype=dtype), at, draw(*lead, *shape[depth:], high=3, dtype=dtype)]
    return Case("", "ScatterND", given, {"reduction": reduction}, constants=[], reference=reference, rtol=1e-4)


@st.composite
def select(random: Random) -> Case:
    shape, draw = random(shapes(1)), draws(random)
    axis, dtype = axis_of(random, len(shape)), random(NUMBERS)
    if random(st.booleans()):
        count = math.prod(shape)
        x = np.argsort(draw(count)).reshape(shape).astype(dtype)  # no two alike
        k, largest = random(st.integers(0, shape[axis])), random(FLAG)

        def first(x: Array, k: Array) -> list[Array]:
            at = np.argsort(-x if largest else x, axis).take(range(int(k[0])), axis)
            return [np.take_along_axis(x, at, axis), at]

        return Case("", "TopK", [x, ints(k)], {"axis": axis, "largest": largest}, outputs=2, reference=first)
    shape = tuple(dim or 1 if i == axis % len(shape) else dim for i, dim in enumerate(shape))
    keepdims, last, op = random(FLAG), random(FLAG), random(st.sampled_from(["ArgMax", "ArgMin"]))

    def extreme(x: Array) -> Array:
        rows = np.flip(x, axis) if last else x
        at = (np.argmax if op == "ArgMax" else np.argmin)(rows, axis, keepdims=bool(keepdims))
        return np.asarray(shape[axis] - 1 - at if last else at)

    options = {"axis": axis, "keepdims": keepdims, "select_last_index": last}
    return Case("", op, [draw(*shape, low=-2, high=2, dtype=np.int32).astype(dtype)], options, reference=extreme)


@st.composite
def cumulative(random: Random) -> Case:
    shape, op, dtype = random(shapes(1)), random(st.sampled_from(["CumSum", "CumProd"])), random(NUMBERS)
    axis, exclusive, reverse = axis_of(random, len(shape)), random(FLAG), random(FLAG)

    def reference(x: Array, _: Array) -> Array:
        rows = np.flip(x, axis) if reverse else x
        function, start = (np.cumsum, 0) if op == "CumSum" else (np.cumprod, 1)
        made = function(rows, axis, dtype=x.dtype)
        if exclusive:
            first = np.full_like(rows.take(range(min(1, shape[axis])), axis), start)
            made = np.concatenate([first, made.take(range(max(0, shape[axis] - 1)), axis)], axis)
        return np.flip(made, axis) if reverse else made

    given = [draws(random)(*shape, low=0.5, high=1.5, dtype=dtype), np.array(axis)]
    options = {"exclusive": exclusive, "reverse": reverse}
    return Case("", op, given, options, opset=26, reference=reference, rtol=1e-4)


@st.composite
def make(random: Random) -> Case:
    op, draw, k = random(st.sampled_from(["EyeLike", "Trilu", "OneHot"])), draws(random), random(st.integers(-4, 4))
    if op == "EyeLike":
        x = draw(*random(shapes(2, 2)), high=9, dtype=random(NUMBERS))
        return Case("", op, [x], {"k": k}, reference=lambda x: np.eye(*x.shape, k=k, dtype=x.dtype))
    if op == "Trilu":
        upper = random(FLAG)
        x = draw(*random(shapes(2)), low=-9, high=9, dtype=random(ANY))
        reference = np.triu if upper else np.tril
        return Case("", op, [x, np.array(k)], {"upper": upper}, reference=lambda x, k: reference(x, int(k)))
    at = draw(*(shape := random(shapes(0, 5))), low=-6, high=6, dtype=np.int64)
    axis, depth = axis_of(random, len(shape) + 1), random(st.sampled_from([1, 2, 5]))

    def one_hot(at: Array, _: Array, values: Array) -> Array:
        codes = np.expand_dims(np.where((at < -depth) | (at >= depth), -1, at % depth), axis)
        places = np.arange(depth).reshape([depth if i == axis % codes.ndim else 1 for i in range(codes.ndim)])
        return values[(codes == places).astype(int)]

    return Case(
        "", op, [at, np.array(depth), draw(2, high=9, dtype=random(NUMBERS))], {"axis": axis}, reference=one_hot
    )


FAMILIES = (
    *(elementwise, reduce, move, blocks, pad, join, gather, gather_elements, gather_nd),
    *(scatter_elements, scatter_nd, select, cumulative, make),
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_drawn(family: Any, backend: str, backend_context: Any) -> None:
    @given(family())
    @BOUNDED
    def agrees(case: Case) -> None:
        check(case, backend, backend_context)

    agrees()
