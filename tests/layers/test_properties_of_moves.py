"""Operators over random shapes and attributes: those that move, pad, join, gather and scatter.

One strategy a family draws cases; NumPy says what is right, or ONNX's evaluator where it can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.test_properties import ANY, BOUNDED, NUMBERS, WHEN, Random, axes_of, axis_of, draws, joined, shapes
from perframe.testing import Case, Draw, check, ints
from perframe.testing.cases import Array


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
        return Case("", op, [x, ints(*starts), ints(*ends), ints(*axes), ints(*steps)], constants=random(WHEN))
    if op == "Expand":
        target, fixed = joined(random, 2)
        x = draws(random)(*fixed, high=9, dtype=dtype)
        return Case("", op, [x, ints(*target)], constants=random(WHEN), reference=lambda x, s: x * np.ones(s, x.dtype))
    if op == "Tile":
        repeats = [random(st.sampled_from([1, 2, 0])) for _ in shape]
        return Case("", op, [x, ints(*repeats)], constants=random(WHEN), reference=np.tile)
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
            constants=random(WHEN),
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
        return Case("", op, [x, ints(*ones)], constants=random(WHEN), reference=lambda x, _: x.squeeze(tuple(ones)))
    count = random(st.integers(0, 2))
    axes = axes_of(random, rank + count, count)[:count]
    return Case("", op, [x, ints(*axes)], constants=random(WHEN), reference=lambda x, _: np.expand_dims(x, tuple(axes)))


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
    return Case("", "Pad", given, {"mode": mode}, constants=random(WHEN), reference=reference)


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
    """Apply one update after the other."""
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
    if reduction == "none":  # of two updates of one element, either may stay
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


FAMILIES = (move, blocks, pad, join, gather, gather_elements, gather_nd, scatter_elements, scatter_nd)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_drawn(family: Any, backend: str, backend_context: Any) -> None:
    @given(family())
    @BOUNDED
    def agrees(case: Case) -> None:
        check(case, backend, backend_context)

    agrees()
