"""Kernels along an axis: running sums, marks of the largest element, and scales of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from layers.test_native import only_native, run
from perframe.testing import Draw

__all__ = ["only_native"]
draw = Draw(131)
SHAPES = [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 1, 300), 0), ((2, 3, 257), 1), ((65, 17), 1), ((130, 129), 1)]


@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_running_sums(shape: tuple[int, ...], axis: int, dtype: Any, exclusive: int, reverse: int) -> None:
    x = draw(*shape, low=-9, high=9, dtype=dtype)
    y = np.flip(x, axis) if reverse else x
    total = np.cumsum(y, axis, dtype) - (y if exclusive else 0)
    made = run("CumSum", x, constants={1: np.array(axis)}, exclusive=exclusive, reverse=reverse)
    np.testing.assert_allclose(made, np.flip(total, axis) if reverse else total, rtol=1e-4, atol=1e-3)


def test_a_running_sum_keeps_infinity_from_earlier_elements() -> None:
    x = np.array([[1, np.inf, 2], [3, 4, np.nan]], np.float32)
    made = run("CumSum", x, constants={1: np.array(1)}, exclusive=1)
    np.testing.assert_array_equal(made, [[0, 1, np.inf], [0, 3, 7]])


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_marks_of_the_largest(shape: tuple[int, ...], axis: int) -> None:
    x = draw(*shape, low=-4, high=4, dtype=np.int64).astype(np.float32)
    marks = np.zeros_like(x)
    np.put_along_axis(marks, np.expand_dims(x.argmax(axis), axis), 1, axis)
    np.testing.assert_array_equal(run("Hardmax", x, axis=axis), marks)


@pytest.mark.parametrize("with_zero", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_scales_of_an_axis(shape: tuple[int, ...], axis: int, dtype: Any, with_zero: bool) -> None:
    x, size = draw(*shape, low=-9, high=9), shape[axis]
    x.reshape(-1)[:3] = np.nan, np.inf, -np.inf
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    scale = draw(size, low=0.01, high=0.1)
    zero = draw(size, low=low, high=high, dtype=np.int64).astype(dtype) if with_zero else np.zeros(size, dtype)
    along = [-1 if at == axis else 1 for at in range(len(shape))]
    scales, zeros = scale.reshape(along), zero.reshape(along).astype(np.float64)
    whole = np.rint((x / scales).astype(np.float64)) + zeros
    expected = np.clip(np.nan_to_num(whole, nan=low), low, high).astype(dtype)
    if with_zero or dtype == np.uint8:
        given = (x, scale, zero) if with_zero else (x, scale)
        np.testing.assert_array_equal(run("QuantizeLinear", *given, axis=axis), expected)
    given = (expected, scale, zero) if with_zero else (expected, scale)
    real = (expected.astype(np.float32) - zeros.astype(np.float32)) * scales
    np.testing.assert_array_equal(run("DequantizeLinear", *given, axis=axis), real)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_an_element_outside_is_an_error(kind: Any) -> None:
    x, at = draw(3, 40), np.zeros((3, 37), kind)
    at[1, 20], at[2, 30] = -40, 39
    np.testing.assert_array_equal(run("GatherElements", x, at, axis=1), np.take_along_axis(x, at.astype(np.int64), 1))
    for wrong in (40, -41):
        at[2, 31] = wrong
        with pytest.raises(pf.PerframeError, match=f"index {wrong} reaches beyond 40 elements"):
            run("GatherElements", x, at, axis=1)


REDUCED = [((7,), (0,)), ((3, 5), (0,)), ((3, 5), (1,)), ((2, 9, 257), (1,)), ((2, 3, 65), (0, 2)), ((3, 4), (0, 1))]


def anywhere(shape: tuple[int, ...], dtype: Any) -> Any:
    info = np.iinfo(dtype)
    return draw(*shape, low=info.min // 2, high=info.max // 2, dtype=np.int64).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize(("shape", "axes"), REDUCED)
def test_extremes_of_whole_numbers(shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any) -> None:
    x, given = anywhere(shape, dtype), {1: np.array(axes)}
    np.testing.assert_array_equal(run("ReduceMax", x, constants=given), x.max(axes, keepdims=True))
    np.testing.assert_array_equal(run("ReduceMin", x, constants=given), x.min(axes, keepdims=True))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("shape", "axes"), REDUCED)
def test_sums_of_whole_numbers_wrap_around(shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any) -> None:
    x, given = anywhere(shape, dtype), {1: np.array(axes)}
    np.testing.assert_array_equal(run("ReduceSum", x, constants=given), x.sum(axes, dtype, keepdims=True))
    np.testing.assert_array_equal(run("ReduceProd", x, constants=given), x.prod(axes, dtype, keepdims=True))
    few = draw(*shape, low=-9, high=9, dtype=dtype)
    total = few.sum(axes, np.int64, keepdims=True)
    mean = np.trunc(total / (x.size // total.size)).astype(dtype)
    if dtype is np.int64:  # NumPy makes means of int32, whose sums may be beyond
        np.testing.assert_array_equal(run("ReduceMean", few, constants=given), mean)


@pytest.mark.parametrize(("shape", "axes"), REDUCED)
def test_extremes_of_truth_values(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = draw(*shape, low=0, high=3, dtype=np.int64) == 0
    np.testing.assert_array_equal(run("ReduceMax", x, constants={1: np.array(axes)}), x.any(axes, keepdims=True))
    np.testing.assert_array_equal(run("ReduceMin", x, constants={1: np.array(axes)}), x.all(axes, keepdims=True))
