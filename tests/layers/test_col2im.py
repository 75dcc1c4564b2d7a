"""Folding columns of blocks into pictures of one to four dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check, ints

draw = Draw(37)


def fold(columns: int, size: Sequence[int], block: Sequence[int], dtype: Any = np.float32, **attributes: Any) -> Case:
    x = draw(2, 3 * int(np.prod(block)), columns, high=9, dtype=dtype)
    said = " ".join(f"{key}={value}" for key, value in attributes.items())
    name = f"{columns} of {tuple(block)} into {tuple(size)} {np.dtype(dtype)} {said}"
    return Case(name, "Col2Im", [x, ints(*size), ints(*block)], attributes, gl=len(size) <= 3)


CASES = [
    fold(5, [5, 5], [1, 5]),
    fold(12, [4, 5], [2, 2]),
    fold(4, [5, 5], [2, 3], strides=[2, 2]),
    fold(25, [4, 5], [2, 2], pads=[1, 0, 1, 1]),
    fold(10, [6, 6], [2, 2], dilations=[1, 4], pads=[0, 0, 0, 0]),
    fold(9, [9], [3], pads=[1, 1]),
    fold(8, [3, 4, 5], [2, 1, 2], strides=[1, 2, 3]),
    fold(16, [3, 3, 3, 3], [2, 2, 2, 2]),
    fold(12, [4, 5], [2, 2], dtype=np.int32),
    fold(12, [4, 5], [2, 2], dtype=np.uint8),
    fold(12, [4, 5], [2, 2], dtype=np.float64),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_col2im(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
