"""Running sums and products: every axis, direction and kind of end, rows of one pass and of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(43)
OPTIONS: list[dict[str, int]] = [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}]


def cumulative(op: str, x: Any, axis: int, options: dict[str, int], **more: Any) -> Case:
    opset = 26 if op == "CumProd" else 14
    name = f"{x.shape} {x.dtype} along {axis} {options}"
    return Case(name, op, [x, np.array(axis, np.int64)], options, opset=opset, **more)


CASES = [
    cumulative(op, draw(*shape, low=0.5, high=1.5), axis, options, rtol=1e-4)
    for op in ("CumSum", "CumProd")
    for shape, axis in (((7,), 0), ((3, 5), 0), ((3, 5), -1), ((2, 33, 3), 1), ((1, 1), 1), ((0, 3), 1), ((3, 0), 1))
    for options in OPTIONS
]
CASES += [cumulative("CumSum", draw(2, 1100, low=-9, high=9, dtype=np.int32), 1, options) for options in OPTIONS]
CASES += [
    cumulative(op, draw(3, 7, low=1, high=2, dtype=dtype), 1, OPTIONS[3], rtol=1e-3 if dtype == np.float16 else 1e-6)
    for op in ("CumSum", "CumProd")
    for dtype in (np.float16, np.float64, np.int64, np.uint32)
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cumulative(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
