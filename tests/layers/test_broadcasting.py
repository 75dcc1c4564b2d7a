"""Broadcasting drawn at random: any shapes that NumPy joins give NumPy's values, and others an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.ir.sizes.partial import PartialTensor
from perframe.testing import Case, Draw, check

BOUNDED = settings(deadline=None, max_examples=25)


@st.composite
def joined(random: Any, count: int) -> list[tuple[int, ...]]:
    """Shapes that broadcast together: each leaves out leading dims of one, and has 1 in the place of some others."""
    whole = random(st.lists(st.integers(0, 4), max_size=5))
    shapes = []
    for _ in range(count):
        kept = random(st.integers(0, len(whole)))
        dims = whole[len(whole) - kept :]
        shapes.append(tuple(1 if random(st.booleans()) else dim for dim in dims))
    return shapes


@given(joined(2))
@BOUNDED
def test_two_operands(shapes: list[tuple[int, ...]]) -> None:
    draw = Draw(1)
    check(Case("drawn", "Sub", [draw(*shape) for shape in shapes], reference=np.subtract), "cpu")


@given(joined(3))
@BOUNDED
def test_three_operands(shapes: list[tuple[int, ...]]) -> None:
    draw = Draw(2)
    inputs = [draw(*shapes[0], dtype=bool), draw(*shapes[1]), draw(*shapes[2])]
    check(Case("drawn", "Where", inputs, reference=np.where), "cpu")


@given(joined(2))
@BOUNDED
def test_products_of_batches(batches: list[tuple[int, ...]]) -> None:
    draw = Draw(3)
    inputs = [draw(*batches[0], 3, 5), draw(*batches[1], 5, 2)]
    check(Case("drawn", "MatMul", inputs, reference=np.matmul, rtol=1e-4), "cpu")


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 3), (3, 2)), ((2, 1, 4), (3, 3))])
def test_shapes_that_do_not_fit_are_an_error(shapes: tuple[tuple[int, ...], ...]) -> None:
    known = [PartialTensor.of(np.zeros(shape, np.float32)) for shape in shapes]
    with pytest.raises(pf.InferenceError, match="do not broadcast"):
        pf.Layer("Add", "sum", ["a", "b"], ["y"]).infer(known)
