"""Indexing gives what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices, integer_array_indices
from numpy.typing import NDArray

import perframe as pf
from perframe.errors import InputError

Array = NDArray[Any]


def counted(shape: tuple[int, ...]) -> Array:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def indexed(array: Array, index: Any, arrays: dict[str, Array] | None = None, fixed: bool = True) -> Array:
    """x[index] by a model; arrays in the index become inputs if they are named."""
    graph = pf.FunctionalGraph()
    dims = array.shape if fixed else [f"d{axis}" for axis in range(array.ndim)]
    x = graph.add_input(pf.DataType.of(array.dtype), dims, "x")
    inputs = {"x": array}
    if arrays:
        index = tuple(
            graph.add_input(pf.DataType.of(item.dtype), [f"{at}_{axis}" for axis in range(item.ndim)], f"i{at}")
            if isinstance(item, np.ndarray)
            else item
            for at, item in enumerate(index)
        )
        inputs |= arrays
    return pf.run(graph.compile(y=x[index], optimize=False), inputs)["y"]


def check(array: Array, index: Any, **how: Any) -> None:
    want = array[index]
    got = indexed(array, index, **how)
    assert (got.shape, got.dtype) == (want.shape, want.dtype), index
    np.testing.assert_array_equal(got, want)


@st.composite
def views(draw: Any) -> tuple[Array, Any]:
    shape = draw(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    return counted(shape), draw(basic_indices(shape, allow_newaxis=True, max_dims=6))


@pytest.mark.quick(cases=0)
@settings(deadline=None, max_examples=100)
@given(views(), st.booleans())
def test_numbers_slices_and_new_dims(case: tuple[Array, Any], fixed: bool) -> None:
    array, index = case
    check(array, index, fixed=fixed)


@st.composite
def selections(draw: Any) -> tuple[Array, tuple[Any, ...]]:
    """Arrays of integers that broadcast, numbers, slices, masks and new dims, in any order."""
    shape = draw(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    chosen = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    arrays = iter(draw(integer_array_indices(tuple(shape[at] for at in sorted(chosen)))))
    index: list[Any] = []
    for axis, size in enumerate(shape):
        if draw(st.integers(0, 9)) == 0:
            index.append(None)
        if axis in chosen:
            index.append(next(arrays))
        else:
            index.append(draw(st.one_of(st.slices(size), st.integers(-size, size - 1))))
    return counted(shape), tuple(index)


@pytest.mark.quick(cases=0)
@settings(deadline=None, max_examples=100)
@given(selections())
def test_arrays_of_integers(case: tuple[Array, tuple[Any, ...]]) -> None:
    check(*case)


@settings(deadline=None, max_examples=40)
@given(selections())
def test_tensors_of_integers(case: tuple[Array, tuple[Any, ...]]) -> None:
    array, index = case
    arrays = {f"i{at}": item for at, item in enumerate(index) if isinstance(item, np.ndarray)}
    check(array, index, arrays=arrays, fixed=False)


MASKS = {
    "all dims": (lambda x: (x > 5,)),
    "the first dim": (lambda x: (x[:, 0, 0] > 5,)),
    "two dims": (lambda x: (slice(None), x[0] > 3)),
    "beside an array": (lambda x: (np.array([0, 1]), x[0, :, 0] > 3, slice(1, None))),
}


@pytest.mark.parametrize("what", MASKS)
@pytest.mark.parametrize("known", [True, False])
def test_masks(what: str, known: bool) -> None:
    array = counted((2, 3, 4))
    index = MASKS[what](array)
    arrays = {} if known else {f"i{at}": item for at, item in enumerate(index) if isinstance(item, np.ndarray)}
    check(array, index, arrays=arrays)


@settings(deadline=None, max_examples=60)
@given(st.one_of(views(), selections()), st.booleans())
def test_items_may_be_set(case: tuple[Array, Any], fixed: bool) -> None:
    """x[index] = value gives other values from then on; what was made of x before stays."""
    array, index = case
    graph = pf.FunctionalGraph()
    dims = array.shape if fixed else [f"d{axis}" for axis in range(array.ndim)]
    x = graph.add_input("float32", dims, "x")
    before, same = x + 0, x.clone()
    x[index] = -1
    got = pf.run(graph.compile(after=x, before=before, same=same, optimize=False), {"x": array})
    want = array.copy()
    want[index] = -1
    np.testing.assert_array_equal(got["after"], want)
    np.testing.assert_array_equal(got["before"], array)
    np.testing.assert_array_equal(got["same"], array)


@settings(max_examples=60, deadline=None)
@given(selections(), st.booleans())
def test_each_item_gets_its_value(case: tuple[Array, tuple[Any, ...]], fixed: bool) -> None:
    array, index = case
    places = counted(array.shape)[index]
    values = -1 - counted(places.shape)
    graph = pf.FunctionalGraph()
    dims = array.shape if fixed else [f"d{axis}" for axis in range(array.ndim)]
    x, value = graph.add_input("float32", dims, "x"), graph.add_input("float32", values.shape, "value")
    x[index] = value
    got = pf.run(graph.compile(y=x, optimize=False), {"x": array, "value": values})["y"]
    want = array.copy()
    want[index] = values
    if len(np.unique(places)) == places.size:
        np.testing.assert_array_equal(got, want)
    else:  # of items that come twice, one of the values counts
        np.testing.assert_array_equal(got < 0, want < 0)


@pytest.mark.parametrize("given", [(2, 5), (0, -1), (5, 16)], ids=["inside", "from the end", "beyond"])
@pytest.mark.parametrize("part", [slice(None), slice(1, 3)], ids=["whole rows", "parts of rows"])
def test_rows_at_indices_of_a_run(given: tuple[int, int], part: slice, backend: str) -> None:
    """An index beyond the dim is an error on the CPU, and changes nothing on a GPU."""
    graph = pf.FunctionalGraph()
    x, rows = graph.add_input("float32", (2, 16, 3), "x"), graph.add_input("float32", (2, 2, 3), "rows")
    x[:, graph.add_input("int64", (2,), "at"), part] = rows[:, :, part]
    model = graph.compile(y=x)
    assert "ScatterND" in [layer.op for layer in model.layers]
    arrays = {"x": counted((2, 16, 3)), "rows": -1 - counted((2, 2, 3)), "at": np.array(given)}
    with pf.Worker(model, backend) as worker:  # type: ignore[arg-type]
        worker.schedule(arrays)
        if backend == "cpu" and max(given) > 15:
            with pytest.raises(pf.PerframeError, match="16"):
                worker.peek_output().numpy()
            return
        want = arrays["x"].copy()
        inside = [at for at in given if at < 16]
        want[:, inside, part] = arrays["rows"][:, : len(inside), part]
        np.testing.assert_array_equal(worker.peek_output().numpy(), want)


def test_set_items_broadcast() -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", ("n", 3), "x")
    x[1:, ::2] = np.array([5.0, 7.0])
    x[:, 1] *= 10
    got = pf.run(graph.compile(y=x), {"x": np.ones((3, 3), np.float32)})["y"]
    np.testing.assert_array_equal(got, [[1, 10, 1], [5, 10, 7], [5, 10, 7]])
    with pytest.raises(InputError, match="do not broadcast"):
        graph.inputs[0][:, 0:2] = np.zeros(3)


def test_bounds_may_be_tensors() -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", ("n", 3), "x")
    half = pf.functional.size(x, 0) // 2
    model = graph.compile(x[:half], x[half:, 1], x[half])
    array = counted((6, 3))
    for got, want in zip(pf.run(model, {"x": array}).values(), (array[:3], array[3:, 1], array[3]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_dims_in_reverse() -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (2, "n", 4), "x")
    array = counted((2, 3, 4))
    assert str(x.T.shape) == "(4, n, 2)"
    np.testing.assert_array_equal(pf.run(graph.compile(y=x.T), {"x": array})["y"], array.T)


def test_iteration_and_length() -> None:
    x = pf.FunctionalGraph().add_input("float32", (3, "n"))
    assert len(x) == 3
    assert [row.shape for row in x] == [("n",)] * 3
    with pytest.raises(InputError, match="no known length: dim 0 is n"):
        len(x[0])


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (5, "index 5 lies outside dim 0 of size 2"),
        ((0, -4), "index -4 lies outside dim 1 of size 3"),
        ((0, 0, 0), "3 dims are indexed, and there are 2"),
        (1.5, "an index is an integer, a slice, None"),
        ("a", ", not 'a'"),
        (slice(0, 2, 0), "step of a slice"),
        (slice("a"), "a bound of a slice"),
        (np.array([0, 7]), "index 7 lies outside dim 0"),
        (np.ones((2, 4), bool), "a mask of size 4 does not fit dim 1 of size 3"),
        ((Ellipsis, Ellipsis), "at most one"),
        (True, "a single bool is not an index"),
        ((np.zeros(2, int), np.zeros(3, int)), "do not broadcast"),
    ],
)
def test_wrong_indices(index: Any, said: str) -> None:
    x = pf.FunctionalGraph().add_input("float32", (2, 3), "x")
    with pytest.raises(InputError, match=said) as caught:
        x[index]
    assert "x: float32 (2, 3)" in str(caught.value)
