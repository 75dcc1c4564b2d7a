"""Bits read as another dtype, and determinants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from layers.runner import Case, Draw, check

draw = Draw(61)

CASES = [
    Case(
        f"{x.dtype} as {np.dtype(to)}",
        "BitCast",
        [x],
        {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))},
        opset=26,
        gl=False,
    )
    for x, to in (
        (draw(2, 3), np.int32),
        (draw(2, 3, high=99, dtype=np.int32), np.float32),
        (draw(3), np.uint32),
        (draw(2, 2, dtype=np.float64), np.int64),
        (draw(5, dtype=np.float16), np.uint16),
        (draw(5, low=-9, high=9, dtype=np.int8), np.uint8),
        (draw(0, 3), np.int32),
    )
]
CASES += [
    Case(f"{shape} {np.dtype(dtype)}", "Det", [draw(*shape, dtype=dtype)], gl=False, rtol=1e-4, atol=1e-5)
    for shape in ((2, 2), (3, 3), (1, 1), (2, 3, 4, 4), (0, 3, 3))
    for dtype in (np.float32, np.float64)
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bits(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
