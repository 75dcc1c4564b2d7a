"""Gathering by indices that are known before the run, and by those that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Case, Draw, check

draw = Draw(11)


def gather(
    axis: int, shape: tuple[int, ...], indices: Any, dtype: Any = np.float32, kind: Any = np.int64, known: bool = True
) -> Case:
    at = np.asarray(indices, kind)
    name = (
        f"{shape} on {axis} by {at.shape} {np.dtype(kind)} of {np.dtype(dtype)} {'known' if known else 'at run time'}"
    )
    x = draw(*shape, high=99, dtype=dtype)
    return Case(name, "Gather", [x, at], {"axis": axis}, constants=[1] if known else [])


CASES = [
    case
    for known in (True, False)
    for case in (
        gather(0, (7,), [0, 6, 3], known=known),
        gather(0, (7,), 4, known=known),
        gather(0, (7,), [-1, -7, 2], known=known),
        gather(0, (5, 3), [4, 4, 0, 1], known=known),
        gather(1, (5, 3), [[2, 0], [1, 1]], known=known),
        gather(-1, (2, 3, 5), [[0, 4, -1]], known=known),
        gather(1, (2, 3, 5), -2, known=known),
        gather(2, (2, 3, 5, 7), [[1], [3]], known=known),
        gather(0, (5, 3), np.zeros((0,)), known=known),
        gather(0, (0, 3), np.zeros((0, 2)), known=known),
        gather(1, (2, 5), [1, 3], kind=np.int32, known=known),
        gather(1, (2, 5), [1, -2], dtype=np.int64, known=known),
        gather(1, (2, 5), [1, -2], dtype=np.int32, known=known),
        gather(1, (2, 5), [1, -2], dtype=bool, known=known),
        gather(1, (2, 5), [1, -2], dtype=np.uint8, known=known),
        gather(1, (2, 5), [1, -2], dtype=np.float16, known=known),
    )
] + [Case("a table by run time indices", "Gather", [draw(11, 4), np.array([[3, 1], [10, 0]])], constants=[0])]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gather(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def elements(axis: int, shape: tuple[int, ...], indices: Any, dtype: Any = np.float32, kind: Any = np.int64) -> Case:
    at = np.asarray(indices, kind)
    name = f"{shape} on {axis} by {at.shape} {np.dtype(kind)} of {np.dtype(dtype)}"
    x = draw(*shape, high=99, dtype=dtype)
    return Case(name, "GatherElements", [x, at], {"axis": axis}, constants=[], reference="onnxruntime")


def tuples(batch_dims: int, shape: tuple[int, ...], indices: Any, dtype: Any = np.float32) -> Case:
    at = np.asarray(indices, np.int64)
    name = f"{shape} after {batch_dims} by {at.shape} of {np.dtype(dtype)}"
    x = draw(*shape, high=99, dtype=dtype)
    return Case(name, "GatherND", [x, at], {"batch_dims": batch_dims}, constants=[])


BY_ELEMENTS = [
    elements(0, (7,), [0, -1, 3]),
    elements(1, (3, 5), [[0, 4, -5], [1, 1, 1]]),
    elements(-1, (2, 3, 5), draw(2, 3, 4, low=-5, high=4, dtype=np.int64)),
    elements(1, (2, 3, 5), draw(2, 11, 5, low=-3, high=2, dtype=np.int64)),
    elements(0, (3, 1, 2, 1, 2, 2), draw(5, 1, 2, 1, 2, 2, low=0, high=2, dtype=np.int64)),
    elements(0, (3, 2), np.zeros((0, 2))),
    elements(0, (3, 2), [[2, 1]], kind=np.int32),
    *(elements(0, (3, 2), [[2, 1]], dtype=dtype) for dtype in (np.int32, np.int64, bool, np.uint8, np.float64)),
    tuples(0, (5,), [[3], [-1]]),
    tuples(0, (5, 3), [[4], [0]]),
    tuples(0, (5, 3), [[4, -1], [0, 2], [1, 1]]),
    tuples(0, (2, 3, 5), [[[1, -1]], [[0, 2]]]),
    tuples(0, (2, 3, 5, 7), [[1, 2, 4, 6]]),
    tuples(1, (2, 3, 5), [[[1], [2]], [[0], [-3]]]),
    tuples(1, (2, 3, 5), [[1, 4], [0, 0]]),
    tuples(2, (2, 2, 5), [[[1], [2]], [[0], [4]]]),
    tuples(0, (5, 3), np.zeros((0, 2))),
    *(tuples(0, (3, 2), [[2, 1]], dtype=dtype) for dtype in (np.int32, np.int64, bool, np.int8, np.float16)),
]


@pytest.mark.parametrize("case", BY_ELEMENTS, ids=str)
def test_gather_by_elements_and_tuples(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize("op", ["GatherElements", "GatherND"])
def test_an_index_outside_is_an_error(op: str) -> None:
    case = Case("", op, [draw(3, 2), np.array([[5, 0]])], constants=[])
    with pytest.raises(pf.PerframeError, match="beyond 3 elements"):
        pf.run(case.proto(), case.fed, backend="cpu")
