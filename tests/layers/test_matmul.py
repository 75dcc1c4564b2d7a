"""Matrix products: batches that broadcast, vectors, Gemm's transposes, scales and bias shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(23)


def matmul(a: Sequence[int], b: Sequence[int], dtype: Any = np.float32, constant: bool = False) -> Case:
    name = f"{tuple(a)} by {tuple(b)} {np.dtype(dtype)}{' known' if constant else ''}"
    inputs = [draw(*shape, low=-3, high=3, dtype=dtype) for shape in (a, b)]
    tolerance = 2e-2 if dtype == np.float16 else 1e-4
    options: dict[str, Any] = {"rtol": tolerance, "atol": tolerance / 10, "gl": np.dtype(dtype).kind == "f"}
    return Case(name, "MatMul", inputs, constants=[1] if constant else [], **options)


def gemm(
    a: Sequence[int],
    b: Sequence[int],
    c: Sequence[int] | None,
    dtype: Any = np.float32,
    known: bool = True,
    **attributes: Any,
) -> Case:
    said = " ".join(f"{key}={value}" for key, value in attributes.items())
    inputs = [draw(*shape, low=-3, high=3, dtype=dtype) for shape in (a, b, c) if shape is not None]
    name = f"{tuple(a)} by {tuple(b)} plus {c} {np.dtype(dtype)} {said}"
    constants = range(1, len(inputs)) if known else []
    options: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "gl": np.dtype(dtype).kind == "f"}
    return Case(name, "Gemm", inputs, attributes, constants=constants, **options)


CASES = [
    matmul((3, 5), (5, 7)),
    matmul((1, 1), (1, 1)),
    matmul((1, 64), (64, 10), constant=True),
    matmul((13, 37), (37, 11), constant=True),
    matmul((65, 130), (130, 33)),
    matmul((9, 8), (8, 264)),  # whole work groups of tiles in a row
    matmul((11, 7), (7, 263), constant=True),
    matmul((6, 40), (40, 21), constant=True),  # texels of both factors, and a last tile that is not full
    matmul((1, 261), (261, 20), constant=True),  # the depth in parts
    matmul((2, 261), (261, 43)),
    matmul((2, 3, 5, 8), (2, 3, 8, 12)),
    matmul((5,), (5,)),
    matmul((5,), (5, 7)),
    matmul((3, 5), (5,)),
    matmul((5,), (2, 5, 7)),
    matmul((2, 3, 5), (5,)),
    matmul((4, 3, 5), (4, 5, 7)),
    matmul((4, 3, 5), (5, 7), constant=True),
    matmul((3, 5), (4, 5, 7)),
    matmul((2, 1, 3, 5), (1, 4, 5, 2)),
    matmul((2, 4, 3, 5), (4, 5, 2)),
    matmul((3, 1, 2, 3, 5), (2, 1, 5, 2)),
    matmul((0, 5), (5, 3)),
    matmul((3, 0), (0, 4)),
    matmul((0, 2, 3), (3, 4)),
    gemm((1, 1032), (9, 1032), None, known=False, transB=1),  # texels hold four of a column
    gemm((12, 16), (20, 16), (20,), known=False, transB=1),
    gemm((7, 12), (7, 10), None, known=False, transA=1),
    matmul((3, 5), (5, 7), np.float64),
    matmul((3, 5), (5, 7), np.float16),
    matmul((3, 5), (5, 7), np.int32),
    matmul((2, 3, 5), (5, 7), np.int64),
    matmul((3, 5), (5, 32)),  # rows of whole strips, which a pixel shader computes at once
    matmul((2, 3, 9), (2, 9, 64)),
    matmul((2, 1, 3, 4), (3, 4, 96), constant=True),
    matmul((1, 9), (9, 36)),  # a row that ends within a strip
    matmul((2, 9), (9, 36)),
    gemm((6, 3), (6, 32), (32,), transA=1),
    gemm((3, 6), (32, 6), (3, 32), transB=1, alpha=0.5, beta=2.0),
    gemm((1, 7), (100, 7), (100,), transB=1),
    gemm((3, 6), (32, 6), (32,), known=False, transB=1),
    gemm((3, 5), (5, 7), None),
    gemm((3, 5), (5, 7), (7,)),
    gemm((3, 5), (5, 7), (3, 7)),
    gemm((3, 5), (5, 7), (3, 1)),
    gemm((3, 5), (5, 7), (1, 7)),
    gemm((3, 5), (5, 7), (1, 1)),
    gemm((3, 5), (5, 7), ()),
    gemm((3, 5), (5, 7), (1,)),
    gemm((5, 3), (5, 7), (7,), transA=1),
    gemm((3, 5), (7, 5), (7,), transB=1),
    gemm((5, 3), (7, 5), (3, 7), transA=1, transB=1),
    gemm((3, 5), (7, 5), (7,), transB=1, alpha=0.5, beta=2.0),
    gemm((3, 5), (5, 7), (3, 1), alpha=-1.5, beta=0.0),
    gemm((3, 5), (5, 7), None, alpha=0.25),
    gemm((1, 37), (11, 37), (11,), transB=1),
    gemm((5, 3), (7, 5), (3, 7), known=False, transA=1, transB=1),
    gemm((3, 5), (7, 5), (7,), np.float64, transB=1, alpha=0.5, beta=2.0),
    gemm((3, 5), (5, 7), (7,), np.int32),
    gemm((3, 5), (7, 5), (7,), np.int64, transB=1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matmul(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
