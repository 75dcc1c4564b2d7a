"""Kernels that select and gather on the CPU give what NumPy gives, for every dtype that they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from layers.test_native import ends, only_native, run
from perframe.testing import Draw

__all__ = ["only_native"]
draw = Draw(97)
KINDS = (np.float32, np.int32, np.int64)
SHAPES = (((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 5), 1), ((2, 1, 5), 1), ((4, 1301), 1), ((2, 9, 700), 1))


def few(*shape: int, dtype: Any) -> Any:
    """Few different numbers, so that many are equal; some NaN where there can be."""
    x = draw(*shape, low=-4, high=4, dtype=np.int64).astype(dtype)
    if dtype == np.float32:
        x.reshape(-1)[:: max(2, x.size // 3)] = np.nan
    return x


def ordered(x: Any, axis: int, largest: bool) -> Any:
    """All positions along an axis in order. Of equal elements, the lower position comes first."""
    reverse = np.flip(x, axis)
    if largest:
        return x.shape[axis] - 1 - np.flip(np.argsort(reverse, axis=axis, kind="stable"), axis)
    return np.argsort(x, axis=axis, kind="stable")


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_places(shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    x = few(*shape, dtype=dtype)
    for op in ("ArgMax", "ArgMin"):
        find = np.argmax if op == "ArgMax" else np.argmin
        np.testing.assert_array_equal(run(op, x, axis=axis), find(x, axis, keepdims=True))
        flipped = x.shape[axis] - 1 - find(np.flip(x, axis), axis, keepdims=True)
        np.testing.assert_array_equal(run(op, x, axis=axis, select_last_index=1), flipped)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_the_first_few(shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    x = few(*shape, dtype=dtype)
    for count in {1, 2, shape[axis] // 2, shape[axis]} - {0}:
        if count > shape[axis]:
            continue
        for largest in (0, 1):
            made = run("TopK", x, constants={1: np.array([count])}, outputs=2, axis=axis, largest=largest)
            order = np.take(ordered(x, axis, bool(largest)), range(count), axis)
            np.testing.assert_array_equal(made[1], order)
            np.testing.assert_array_equal(made[0], np.take_along_axis(x, order, axis))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float16, bool])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_elements(dtype: Any, kind: Any) -> None:
    for shape, axis, wanted in (((7,), 0, (3,)), ((3, 5), 0, (2, 4)), ((3, 5), 1, (3, 9)), ((2, 3, 67), 1, (2, 5, 61))):
        x = draw(*shape, high=99, dtype=dtype)
        at = draw(*wanted, low=-shape[axis], high=shape[axis] - 1, dtype=kind)
        want = np.take_along_axis(
            x[tuple(slice(n) if i != axis else slice(None) for i, n in enumerate(wanted))], at, axis
        )
        np.testing.assert_array_equal(run("GatherElements", x, at, axis=axis), want)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float16, bool])
@pytest.mark.parametrize("kind", [np.int64])
def test_tuples(dtype: Any, kind: Any) -> None:
    x = draw(2, 3, 5, 7, high=99, dtype=dtype)
    for batch, depth in ((0, 1), (0, 2), (0, 4), (1, 1), (1, 3), (2, 2)):
        at = np.stack([draw(2, 3, 11, low=-n, high=n - 1, dtype=kind) for n in x.shape[batch : batch + depth]], -1)
        made = run("GatherND", x, at, batch_dims=batch)
        for place in np.ndindex(*at.shape[:-1]):
            np.testing.assert_array_equal(made[place], x[place[:batch]][tuple(at[place])])


def test_an_index_outside_is_refused() -> None:
    x = draw(3, 5)
    for op, at in (("GatherElements", np.array([[0, 5]])), ("GatherND", np.array([[1, -6]]))):
        with pytest.raises(pf.BackendError, match="reaches beyond"):
            run(op, x, at, **({"axis": 1} if op == "GatherElements" else {}))


@pytest.mark.parametrize("largest", [0, 1])
def test_a_sort_of_special_values(largest: int) -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38], np.float32)
    for x in (np.tile(special, (3, 7)), np.zeros((2, 50), np.float32), ends(np.int32).repeat(5)[None]):
        size = x.shape[1]
        made = run("TopK", x, constants={1: np.array([size])}, outputs=2, axis=1, largest=largest)
        np.testing.assert_array_equal(made[1], ordered(x, 1, bool(largest)))


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float16, np.float32, np.int64])
@pytest.mark.parametrize("times", [(1, 2), (2, 2), (3, 1), (5, 3), (2, 4)])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 5, 7), (1, 2, 3, 33)])
def test_nearest_repeats_elements(shape: tuple[int, ...], times: tuple[int, int], dtype: Any) -> None:
    x = draw(*shape, low=0, high=9, dtype=np.int64).astype(dtype)
    scales = {1: np.zeros(0, np.float32), 2: np.array([1, 1, *times], np.float32)}
    attributes = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    made = run("Resize", x, constants=scales, **attributes)
    np.testing.assert_array_equal(made, x.repeat(times[0], 2).repeat(times[1], 3))


def test_a_weight_of_zero_hides_infinity() -> None:
    x = np.array([[[[1, np.inf, 2], [3, 4, np.nan]]]], np.float32)
    scales = {1: np.zeros(0, np.float32), 2: np.array([1, 1, 2, 2], np.float32)}
    made = run("Resize", x, constants=scales, mode="linear", coordinate_transformation_mode="asymmetric")
    assert made[0, 0, 0, :2].tolist() == [1, np.inf] and made[0, 0, 2, 0] == 3 and np.isnan(made[0, 0, 2, 3:]).all()
