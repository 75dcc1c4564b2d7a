"""Determinants: of stacks, of matrices that need pivots, that are singular, and of none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Case, Draw, check

draw = Draw(61)


def det(x: Any, name: str = "") -> Case:
    return Case(name or f"{x.shape} {x.dtype}", "Det", [x], rtol=1e-4, atol=1e-5)


SHAPES = ((2, 2), (3, 3), (1, 1), (2, 3, 4, 4), (0, 3, 3), (5, 1, 1), (37, 3, 3), (3, 7, 7), (2, 13, 13))
SWAPPED = np.array([[0, 2, 1], [0, 0, 3], [5, 1, 1]], np.float32)
CASES = [det(draw(*shape, dtype=dtype)) for shape in SHAPES for dtype in (np.float32, np.float64)]
CASES += [
    det(SWAPPED, "pivots"),
    det(np.stack([SWAPPED, SWAPPED[::-1], np.eye(3, dtype=np.float32)]), "stack of pivots"),
    det(np.ones((2, 4, 4), np.float32), "singular"),
    det(np.zeros((3, 3), np.float32), "zeros"),
    det(np.eye(64, dtype=np.float32)[::-1].copy(), "large"),
    det(np.zeros((2, 0, 0), np.float32), "without elements"),
    det(np.array([[np.nan, 1], [2, 3]], np.float32), "NaN"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_det(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def test_large_matrices_are_refused_on_a_gpu(gl_context: Any) -> None:
    case = det(np.eye(129, dtype=np.float32))
    with pytest.raises(pf.FallbackError, match="129 rows"):
        pf.run(case.proto(), case.fed, backend="gpu_pixel", strict=True, ctx=gl_context)
