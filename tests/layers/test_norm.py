"""Softmax and its logarithm, along any axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layers.runner import Case, Draw, check

draw = Draw(29)
SHAPES = ((7,), (3, 5), (2, 3, 5), (2, 3, 5, 7), (2, 1, 3, 2, 5), (1, 211), (0, 3), (4, 1))

CASES = [
    Case(f"{shape} along {axis}", op, [draw(*shape, low=-9, high=9)], {"axis": axis}, rtol=1e-4)
    for op in ("Softmax", "LogSoftmax")
    for shape in SHAPES
    for axis in (*range(len(shape)), -1)
    if shape[axis]
]
CASES += [
    Case(f"{np.dtype(dtype)}", op, [draw(3, 5, dtype=dtype)], rtol=tolerance, atol=tolerance)
    for op in ("Softmax", "LogSoftmax")
    for dtype, tolerance in ((np.float64, 1e-6), (np.float16, 1e-2))
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_norm(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
