"""Concatenation on any axis, of any dtype, of parts that may be empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(7)


def concat(axis: int, *shapes: tuple[int, ...], dtype: Any = np.float32) -> Case:
    parts = [draw(*shape, high=99, dtype=dtype) for shape in shapes]
    return Case(f"{shapes} on {axis} {np.dtype(dtype)}", "Concat", parts, {"axis": axis})


CASES = [
    concat(0, (3, 5)),
    concat(0, (2,), (3,), (1,)),
    concat(0, (2, 5), (3, 5)),
    concat(1, (2, 5), (2, 1), (2, 7)),
    concat(-1, (2, 3, 1), (2, 3, 4)),
    concat(-3, (1, 3, 5, 2), (1, 7, 5, 2)),
    concat(1, (2, 3, 5, 7), (2, 4, 5, 7)),
    concat(2, (2, 1, 3, 2, 2), (2, 1, 1, 2, 2)),
    concat(0, (0, 3), (2, 3)),
    concat(1, (2, 3), (2, 0), (2, 1)),
    concat(0, (0, 3), (0, 3)),
    concat(1, *((2, 1, 3),) * 9),
    concat(1, (2, 3), (2, 4), dtype=np.int64),
    concat(1, (2, 3), (2, 4), dtype=np.int32),
    concat(1, (2, 3), (2, 4), dtype=np.uint8),
    concat(1, (2, 3), (2, 4), dtype=np.float16),
    concat(1, (2, 3), (2, 4), dtype=np.float64),
    concat(1, (2, 3), (2, 4), dtype=bool),
    Case("one part constant", "Concat", [draw(2, 3), draw(2, 2)], {"axis": 1}, constants=[1]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_join(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
