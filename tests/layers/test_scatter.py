"""Scattering: by elements and by tuples, with every reduction, and into the rows of a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(13)
REDUCTIONS = ("none", "add", "mul", "max", "min")


def elements(shape: tuple[int, ...], indices: Any, axis: int = 0, dtype: Any = np.float32, **attributes: Any) -> Case:
    at = np.asarray(indices, np.int64)
    name = f"{shape} on {axis} by {at.shape} of {np.dtype(dtype)} {attributes.get('reduction', '')}"
    x, updates = draw(*shape, high=9, dtype=dtype), draw(*at.shape, high=9, dtype=dtype)
    return Case(name, "ScatterElements", [x, at, updates], {"axis": axis, **attributes}, constants=[])


def tuples(shape: tuple[int, ...], indices: Any, dtype: Any = np.float32, **attributes: Any) -> Case:
    at = np.asarray(indices, np.int64)
    name = f"{shape} by {at.shape} of {np.dtype(dtype)} {attributes.get('reduction', '')}"
    x = draw(*shape, high=9, dtype=dtype)
    updates = draw(*at.shape[:-1], *shape[at.shape[-1] :], high=9, dtype=dtype)
    return Case(name, "ScatterND", [x, at, updates], attributes, constants=[])


def rows(shape: tuple[int, ...], count: int, begin: Any, axis: int = -2, mode: str = "linear", **more: Any) -> Case:
    update = draw(*shape[:axis], count, *shape[axis % len(shape) + 1 :], **more)
    x, at = draw(*shape, **more), None if begin is None else np.array(begin, np.int64)
    name = f"{shape} {count} rows of axis {axis} at {begin} {mode} {more.get('dtype', '')}"
    return Case(name, "TensorScatter", [x, update, at], {"axis": axis, "mode": mode}, constants=[])


def _permuted(count: int) -> Any:
    return np.random.default_rng(3).permutation(count)


CASES = [
    elements((5,), [3, -5]),
    elements((3, 5), [[1, 0, 2], [0, 2, 1]]),
    elements((3, 5), [[1, -1], [0, 2]], axis=1),
    elements((2, 3, 4), [[[0], [1]]], axis=-1),
    elements((3, 5), np.zeros((0, 5))),
    elements((700,), _permuted(700)[:600]),
    elements((2, 700), np.stack([_permuted(700), _permuted(700)]), axis=1),
    *(elements((40, 3), draw(301, 3, low=-40, high=39, dtype=np.int64), reduction=by) for by in REDUCTIONS[1:]),
    elements((2, 5, 7), draw(2, 401, 3, low=-5, high=4, dtype=np.int64), axis=1, dtype=np.int32, reduction="add"),
    elements((7,), draw(15_500, low=-7, high=6, dtype=np.int64), dtype=np.int32, reduction="add"),  # two passes on GL
    tuples((6, 5, 3), draw(311, 2, low=-5, high=4, dtype=np.int64), dtype=np.int32, reduction="add"),
    *(elements((3, 5), [[1, 1, 0, 2, 2], [1, 0, 0, 1, 2]], reduction=reduction) for reduction in REDUCTIONS[1:]),
    *(
        elements((3, 5), [[1, 1, 0], [4, 4, 4]], axis=1, reduction=reduction, dtype=dtype)
        for reduction in REDUCTIONS[1:]
        for dtype in (np.int32, np.int64, np.uint8, np.float64)
    ),
    *(
        Case(
            f"{reduction} overflows {np.dtype(dtype)}",
            "ScatterElements",
            [np.full(3, 100, dtype), np.array([0, 0, 2]), np.array([100, 99, 3], dtype)],
            {"reduction": reduction},
        )
        for reduction in ("add", "mul")
        for dtype in (np.int8, np.uint8)
    ),
    *(elements((3, 2), [[2, 1]], dtype=dtype) for dtype in (np.int32, np.int64, bool, np.uint8, np.float16)),
    elements((9,), np.arange(20_000) % 9, reduction="max"),
    tuples((5,), [[3], [1]]),
    tuples((5, 3), [[-1], [0]]),
    tuples((5, 3), [[4, -1], [0, 2]]),
    tuples((2, 3, 5), [[[1, -1], [0, 2]]]),
    tuples((4, 3), np.zeros((0, 1))),
    tuples((600, 2), _permuted(600)[:500, None]),
    *(tuples((5, 3), [[1], [1], [-4]], reduction=reduction) for reduction in REDUCTIONS[1:]),
    *(
        tuples((5, 3), [[1, 2], [1, 2], [0, -1]], reduction=reduction, dtype=dtype)
        for reduction in REDUCTIONS[1:]
        for dtype in (np.int32, np.int64, np.int8, np.float64)
    ),
    *(tuples((3, 2), [[2, 1]], dtype=dtype) for dtype in (np.int32, np.int64, bool, np.uint8, np.float16)),
    rows((2, 7, 3), 2, [5, 0]),
    rows((2, 7, 3), 2, None),
    rows((2, 4, 5, 3), 3, [1, 2]),
    rows((2, 5, 3), 4, [3, 4], mode="circular"),
    rows((3, 2, 5), 2, [3, 4, 0], axis=2, mode="circular"),
    rows((2, 7, 3), 7, [0, 0], dtype=np.int32),
    rows((2, 7, 3), 1, [6, 2], dtype=np.float16),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scatter(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def test_scatter_of_old_opsets(backend: str, backend_context: Any) -> None:
    x, at, updates = draw(3, 5), np.array([[1, 0, 2]]), draw(1, 3)
    check(
        Case("9", "Scatter", [x, at, updates], {"axis": 1}, constants=[], opset=9, reference="onnxruntime"),
        backend,
        backend_context,
    )
