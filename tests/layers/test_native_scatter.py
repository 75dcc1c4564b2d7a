"""Kernels that scatter on the CPU give what ONNX's definition gives, for every dtype, in the order of the updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import perframe as pf
from layers.test_native import only_native, run
from perframe.testing import Draw

__all__ = ["only_native"]
draw = Draw(113)
COMBINE: dict[str, Any] = {
    "none": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
DTYPES = (np.float32, np.int64, np.int8)


def scattered(x: Any, indices: Any, updates: Any, axis: int, reduction: str) -> Any:
    y = x.copy()
    with np.errstate(all="ignore"):
        for at in np.ndindex(indices.shape):
            to = (*at[:axis], indices[at], *at[axis + 1 :])
            y[to] = COMBINE[reduction](y[to], updates[at])
    return y


def scattered_tuples(x: Any, indices: Any, updates: Any, reduction: str = "none") -> Any:
    y = x.copy()
    with np.errstate(all="ignore"):
        for at in np.ndindex(indices.shape[:-1]):
            to = tuple(indices[at])
            y[to] = COMBINE[reduction](y[to], updates[at])
    return y


@pytest.mark.parametrize("reduction", COMBINE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "extent", "axis"),
    [
        *[((7,), (11,), 0), ((3, 5), (3, 2), 1), ((3, 5), (4, 5), 0)],
        *[((3, 4, 5), (2, 9, 3), 1), ((2, 3, 300), (1, 4, 257), 1)],
    ],
)
def test_elements(shape: tuple[int, ...], extent: tuple[int, ...], axis: int, dtype: Any, reduction: str) -> None:
    x, updates = (draw(*dims, low=0, high=9, dtype=dtype) for dims in (shape, extent))
    at = draw(*extent, low=-shape[axis], high=shape[axis] - 1, dtype=np.int64)
    made = run("ScatterElements", x, at, updates, axis=axis, reduction=reduction)
    np.testing.assert_allclose(made, scattered(x, at, updates, axis, reduction), rtol=1e-6)


@pytest.mark.parametrize("reduction", COMBINE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "count", "depth"), [((7,), 9, 1), ((5, 3), 7, 2), ((4, 3, 5), 6, 2), ((3, 600), 5, 1)]
)
def test_tuples(shape: tuple[int, ...], count: int, depth: int, dtype: Any, reduction: str) -> None:
    at = np.stack([draw(count, low=-size, high=size - 1, dtype=np.int64) for size in shape[:depth]], -1)
    x, updates = (draw(*dims, low=0, high=9, dtype=dtype) for dims in (shape, (count, *shape[depth:])))
    made = run("ScatterND", x, at, updates, reduction=reduction)
    np.testing.assert_allclose(made, scattered_tuples(x, at, updates, reduction), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.uint8, np.float32, np.int64])
def test_updates_of_every_size(dtype: Any) -> None:
    x, updates = draw(5, 3, low=0, high=2, dtype=np.int64).astype(dtype), np.array([[1, 0, 1]], dtype)
    np.testing.assert_array_equal(run("ScatterND", x, np.array([[-2]]), updates)[3], updates[0])
    made = run("ScatterElements", x, np.array([[4, 0, -1]]), updates)
    np.testing.assert_array_equal(made, scattered(x, np.array([[4, 0, 4]]), updates, 0, "none"))


def _grid(*axes: Any) -> Any:
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1)


SLICES = {
    "rows": _grid(range(2, 5)),
    "every second row, backwards": _grid(range(6, 0, -2)),
    "negative": _grid(range(-3, 0), [-1]),
    "columns": _grid(range(7), range(1, 5, 2)),
    "a block": _grid(range(3, 6), [2], range(3)),
    "in another order": np.moveaxis(_grid(range(3, 6), range(5), range(3)), 2, 0),
    "a diagonal": np.stack([np.arange(3)] * 3, -1),
    "one element": np.array([6, 4, 2]),
    "nothing grows": np.array([[1, 1], [1, 1], [1, 1]]),
    "uneven": np.array([[1, 1], [1, 2], [1, 4]]),
    "both signs": np.array([[-1], [0], [1]]),
    "the same rows again": np.array([[[0], [1], [2]], [[1], [2], [3]]]),
    "none": np.zeros((0, 2)),
    "all": np.zeros((1, 0)),
}


@pytest.mark.parametrize("name", SLICES)
def test_known_slices(name: str) -> None:
    at = SLICES[name].astype(np.int64)
    x, updates = draw(7, 5, 3), draw(*at.shape[:-1], *(7, 5, 3)[at.shape[-1] :])
    made = run("ScatterND", x, updates, constants={1: at})
    np.testing.assert_array_equal(made, scattered_tuples(x, at, updates))


@pytest.mark.parametrize("index", [5, -6, 2**40])
def test_an_index_outside_is_an_error(index: int) -> None:
    x, at = draw(5, 3), np.array([[index]])
    with pytest.raises(pf.PerframeError, match=f"index {index} reaches beyond 5 elements"):
        run("ScatterND", x, at, draw(1, 3))
    with pytest.raises(pf.PerframeError, match=f"index {index} reaches beyond 5 elements"):
        run("ScatterND", x, draw(1, 3), constants={1: at})
    with pytest.raises(pf.PerframeError, match=f"index {index} reaches beyond 5 elements"):
        run("ScatterElements", x, at, draw(1, 1))


@pytest.mark.parametrize("reads_again", [False, True])
def test_updates_overwrite_data_that_no_layer_reads_again(reads_again: bool) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["data"]),
        helper.make_node("ScatterND", ["data", "at", "u"], ["z"]),
        helper.make_node("Mul", ["z", "data" if reads_again else "z"], ["y"]),
    ]
    kinds = {"x": (1, (5, 3)), "at": (7, (2, 1)), "u": (1, (2, 3))}
    given = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    graph = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info("y", 1, (5, 3))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    x, at, u = draw(5, 3), np.array([[1], [3]]), draw(2, 3)
    data = np.maximum(x, 0)
    z = scattered_tuples(data, at, u)
    for _ in range(2):
        made = pf.run(pf.load(model), {"x": x, "at": at, "u": u}, backend="cpu")["y"]
        np.testing.assert_array_equal(made, z * (data if reads_again else z))


def test_a_slice_of_data_of_other_sizes() -> None:
    at = numpy_helper.from_array(np.array([[4], [5]]), "at")
    given = [helper.make_tensor_value_info("x", 1, ("n", "m")), helper.make_tensor_value_info("u", 1, (2, "m"))]
    made = [helper.make_tensor_value_info("y", 1, ("n", "m"))]
    graph = helper.make_graph([helper.make_node("ScatterND", ["x", "at", "u"], ["y"])], "g", given, made, [at])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pf.Worker(pf.load(model), "cpu") as worker:
        for rows, columns in [(7, 3), (9, 5), (6, 4), (6, 2), (5, 3), (8, 3)]:
            x, u = draw(rows, columns), draw(2, columns)
            if rows < 6:
                with pytest.raises(pf.PerframeError, match="index 5 reaches beyond 5 elements"):
                    worker.schedule(x, u).peek_output().download_to_array()
                continue
            y = worker.schedule(x, u).peek_output().download_to_array()
            np.testing.assert_array_equal(y, [*x[:4], *u, *x[6:]])
