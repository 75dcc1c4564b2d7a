"""Pairs that are rotated: halves and neighbours, tables by number and by pair, and all ways to broadcast them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Case, Draw, check
from perframe.testing.cases import Array

draw = Draw(83)


def rotated(interleaved: int) -> Any:
    """The definition with complex numbers, in float64."""

    def compute(x: Array, cos: Array, sin: Array) -> Array:
        def pairs(values: Array) -> tuple[Array, Array]:
            return (values[..., ::2], values[..., 1::2]) if interleaved else tuple(np.split(values, 2, -1))

        size = x.shape[-1]
        a, b = pairs(x.astype(np.float64))
        (c, d), (s, t) = (pairs(table) if table.shape[-1] == size else (table, table) for table in (cos, sin))
        out = np.empty(x.shape, np.float64)
        first, second = pairs(out)
        first[...], second[...] = a * c - b * s, b * d + a * t
        return out.astype(x.dtype)

    return compute


def case(shape: tuple[int, ...], cos: tuple[int, ...], sin: tuple[int, ...], interleaved: int, **more: Any) -> Case:
    dtype = more.pop("dtype", np.float32)
    given = [draw(*one, low=-2, high=2, dtype=dtype) for one in (shape, cos, sin)]
    name = f"{shape} by {cos} {sin} interleaved={interleaved} {np.dtype(dtype)}"
    return Case(name, "RotatePairs", given, {"interleaved": interleaved}, reference=rotated(interleaved), **more)


CASES = [
    case(shape, cos, sin, interleaved)
    for interleaved in (0, 1)
    for shape, cos, sin in (
        ((2, 3, 5, 8), (1, 1, 5, 8), (1, 1, 5, 8)),
        ((2, 3, 5, 8), (2, 1, 5, 4), (5, 4)),
        ((2, 5, 3, 8), (1, 5, 1, 8), (2, 5, 1, 8)),
        ((2, 3, 5, 6), (3, 1, 3), (3, 1, 3)),
        ((2, 2, 2, 2, 2, 38), (2, 1, 2, 1, 2, 19), (1, 2, 1, 2, 1, 19)),
        ((700, 64), (64,), (700, 64)),
        ((3, 2), (1,), (3, 1)),
        ((0, 3, 4), (3, 4), (3, 4)),
    )
]
CASES += [
    case((2, 3, 8), (3, 8), (3, 8), 1, dtype=dtype, rtol=2e-3 if dtype == np.float16 else 1e-12)
    for dtype in (np.float16, np.float64)
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rotate_pairs(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (((2, 7), (7,), (7,)), "not a row of pairs"),
        (((2, 8), (3,), (8,)), "not a row of pairs"),
        (((2, 8), (2, 2, 8), (8,)), "do not broadcast"),
        (((1, 8), (3, 8), (8,)), "does not broadcast"),
        (((2, 8), (8,), (4,)), "equally many"),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_refused(shapes: Any, said: str) -> None:
    wrong = Case("", "RotatePairs", [draw(*shape) for shape in shapes])
    with pytest.raises(pf.PerframeError, match=said):
        pf.run(wrong.proto(), wrong.fed)
