"""Shapes with unknown dims, and tensors of which only some facts are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.ir.shape_arithmetic import listed
from perframe.ir.sizes.partial import PartialTensor, broadcast, number_of
from perframe.ir.sizes.trace import Trace

Dynamic = pf.DynamicTensorShape


def test_dims_are_ints_names_and_unknowns() -> None:
    shape = Dynamic(("batch", np.int64(3), None))
    assert shape.rank == 3 and not shape.is_static and shape.size is None
    assert repr(shape) == "(batch, 3, ?)"
    assert type(shape[1]) is int


def test_bind_names_dims() -> None:
    assert Dynamic(("batch", 3, "width")).with_dims({"batch": 2}) == (2, 3, "width")
    assert Dynamic(("batch", 3)).with_dims({"batch": 2}).to_shape() == (2, 3)


def test_to_shape_wants_all_dims() -> None:
    with pytest.raises(pf.InferenceError, match="batch"):
        Dynamic(("batch", 3)).to_shape()


@pytest.mark.parametrize(
    ("shape", "concrete", "fits"),
    [
        (("n", 3), (5, 3), True),
        (("n", 3), (5, 4), False),
        (("n", "n"), (5, 5), True),
        (("n", "n"), (5, 4), False),
        ((None, None), (5, 4), True),
        ((None,), (5, 4), False),
        ((), (), True),
    ],
)
def test_accepts(shape: Any, concrete: Any, fits: bool) -> None:
    assert Dynamic(shape).accepts(concrete) is fits


def test_partial_tensor_of_a_value_knows_it() -> None:
    known = PartialTensor.of(np.array([2, 3]))
    assert known.value is not None and known.ints() == (2, 3) and known.is_static() and known.is_known
    assert known.dtype is pf.DataType.INT64 and listed(known) == (2, 3)


def test_some_values_may_be_unknown() -> None:
    partly = PartialTensor.of_values(pf.DataType.INT64, (number_of("n"), 3, None))
    assert listed(partly) == ("n", 3, None) and partly.ints() is None and partly.shape == (3,)
    assert partly.value is None and not partly.is_known
    assert PartialTensor.of_values(pf.DataType.INT64, (5, 3)).ints() == (5, 3)


def test_sizes_of_a_trace_are_known_values() -> None:
    (size,) = Trace([4]).sizes
    traced = PartialTensor.of_values(pf.DataType.INT64, (size, 3))
    assert traced.is_known and traced.value is None and traced.ints() is not None
    np.testing.assert_array_equal(traced.specialized_value(), [4, 3])


def test_a_matrix_and_floats_are_no_list_of_dims() -> None:
    assert listed(PartialTensor.of(np.ones((2, 2), np.int64))) is None
    assert listed(PartialTensor.of(np.ones(2, np.float32))) == (None, None)


SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(SHAPES, SHAPES)
@settings(deadline=None, max_examples=100)
def test_broadcast_agrees_with_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        want = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(pf.InferenceError, match="do not broadcast"):
            broadcast(Dynamic(a), Dynamic(b))
        return
    assert broadcast(Dynamic(a), Dynamic(b)) == want


@given(SHAPES, SHAPES, st.lists(st.booleans(), min_size=8, max_size=8))
@settings(deadline=None, max_examples=100)
def test_broadcast_of_less_known_shapes_accepts_any_dims(
    a: tuple[int, ...], b: tuple[int, ...], hidden: list[bool]
) -> None:
    """Hiding dims never makes a wrong claim."""
    try:
        want = np.broadcast_shapes(a, b)
    except ValueError:
        return
    left = Dynamic(None if hide else dim for dim, hide in zip(a, hidden, strict=False))
    right = Dynamic(None if hide else dim for dim, hide in zip(b, hidden[4:], strict=False))
    made = broadcast(left, right)
    assert made is not None and made.accepts(want)


def test_broadcast_keeps_names() -> None:
    assert broadcast(Dynamic(("n", 3)), Dynamic((1, 1))) == ("n", 3)
    assert broadcast(Dynamic(("n", 3)), Dynamic(("n", 3))) == ("n", 3)
    assert broadcast(Dynamic(("n",)), Dynamic(("m",))) == (None,)
    assert broadcast(Dynamic(("n",)), Dynamic((5,))) == (5,)
    assert broadcast(Dynamic((2,)), None) is None
