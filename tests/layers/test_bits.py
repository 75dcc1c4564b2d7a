"""Bits read as another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from perframe.testing import Case, Draw, check

draw = Draw(61)

# floats and ints of 32 bits live on a GPU, smaller whole numbers do as ints, and no others
CASES = [
    Case(
        f"{x.shape} {x.dtype} as {np.dtype(to)}",
        "BitCast",
        [x],
        {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))},
        opset=26,
        gl=gl,
        atol=0,
    )
    for x, to, gl in (
        (draw(2, 3), np.int32, True),
        (draw(7, 11, 13, low=-1e30, high=1e30), np.int32, True),
        (draw(2, 3, high=99, dtype=np.int32), np.float32, False),  # denormals, which a GPU may take for 0
        (draw(3, 37, low=1 << 24, high=(1 << 30), dtype=np.int32), np.float32, True),
        (draw(3, 5, low=-9, dtype=np.int32), np.int32, True),
        (draw(5, dtype=np.int64), np.int64, True),
        (draw(3), np.uint32, False),
        (draw(2, 2, dtype=np.float64), np.int64, False),
        (draw(5, dtype=np.float16), np.uint16, False),
        (draw(5, low=-9, high=9, dtype=np.int8), np.uint8, True),
        (draw(9, high=255, dtype=np.uint8), np.int8, True),
        (draw(9, 3, low=-30000, high=30000, dtype=np.int16), np.uint16, True),
        (draw(1, high=65535, dtype=np.uint16), np.int16, True),
        (draw(7, dtype=bool), np.uint8, True),
        (draw(7, high=1, dtype=np.uint8), bool, True),
        (draw(0, 3), np.int32, True),
        (np.float32(-0.0), np.int32, True),
    )
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bits(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
