"""Gathering by indices that are known before the run, and by those that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layers.runner import Case, Draw, check

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
