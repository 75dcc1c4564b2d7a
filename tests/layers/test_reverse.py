"""Reversing the beginnings of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check, ints

draw = Draw(17)


def reverse(shape: tuple[int, ...], lengths: tuple[int, ...], batch: int, time: int, dtype: Any = np.float32) -> Case:
    x = draw(*shape, high=9, dtype=dtype)
    attributes = {"batch_axis": batch, "time_axis": time}
    name = f"{shape} {lengths} batch {batch} time {time} {np.dtype(dtype)}"
    return Case(name, "ReverseSequence", [x, ints(*lengths)], attributes, constants=[])


CASES = [
    reverse((5, 3), (5, 1, 4), 1, 0),
    reverse((3, 5), (2, 5, 3), 0, 1),
    reverse((3, 5, 2, 3), (2, 5, 1), 0, 1),
    reverse((5, 3, 7), (2, 5, 0), 1, 0),
    *(reverse((5, 3), (5, 1, 4), 1, 0, dtype) for dtype in (np.int32, np.int64, bool, np.uint8, np.float64)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reverse(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
