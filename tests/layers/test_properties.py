"""Operators over random shapes and attributes: elementwise ones, reductions, selections, sums and generators.

One strategy a family draws cases; NumPy says what is right, or ONNX's evaluator where it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perframe.testing import Case, Draw, check, ints
from perframe.testing.cases import Array

Shape = tuple[int, ...]
Random = Callable[[st.SearchStrategy[Any]], Any]

BOUNDED = settings(
    deadline=None,
    max_examples=20,
    derandomize=True,
    # the fixture is the same context for every example; shaders take their time to compile
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FLAG = st.integers(0, 1)
WHEN: Any = st.sampled_from([None, ()])  # whether inputs that decide shapes are in the file, or come with the frame
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
    options = {"keepdims": keepdims, "noop_with_empty_axes": noop}
    return Case("", op, given, options, constants=random(WHEN), reference=reference, rtol=1e-4)


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

        return Case(
            "",
            "TopK",
            [x, ints(k)],
            {"axis": axis, "largest": largest},
            outputs=2,
            constants=random(WHEN),
            reference=first,
        )
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
    return Case("", op, given, options, constants=random(WHEN), opset=26, reference=reference, rtol=1e-4)


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
        given = [x, np.array(k)]
        return Case(
            "", op, given, {"upper": upper}, constants=random(WHEN), reference=lambda x, k: reference(x, int(k))
        )
    at = draw(*(shape := random(shapes(0, 5))), low=-6, high=6, dtype=np.int64)
    axis, depth = axis_of(random, len(shape) + 1), random(st.sampled_from([1, 2, 5]))

    def one_hot(at: Array, _: Array, values: Array) -> Array:
        codes = np.expand_dims(np.where((at < -depth) | (at >= depth), -1, at % depth), axis)
        places = np.arange(depth).reshape([depth if i == axis % codes.ndim else 1 for i in range(codes.ndim)])
        return values[(codes == places).astype(int)]

    return Case(
        "", op, [at, np.array(depth), draw(2, high=9, dtype=random(NUMBERS))], {"axis": axis}, reference=one_hot
    )


FAMILIES = (elementwise, reduce, select, cumulative, make)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_drawn(family: Any, backend: str, backend_context: Any) -> None:
    @given(family())
    @BOUNDED
    def agrees(case: Case) -> None:
        check(case, backend, backend_context)

    agrees()
