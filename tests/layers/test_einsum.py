"""Einstein summation: diagonals, traces, ellipses, implicit outputs, products of one to four operands."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perframe as pf
from perframe.ir.declaration import declaration
from perframe.ir.sizes.partial import PartialTensor
from perframe.testing import Case, Draw, check

draw = Draw(41)


def einsum(equation: str, *shapes: tuple[int, ...], dtype: Any = np.float32, gl: bool = True) -> Case:
    inputs = [draw(*shape, low=-3, high=3, dtype=dtype) for shape in shapes]
    name = f"{equation} of {', '.join(map(str, shapes))} {np.dtype(dtype)}"
    tolerance = 1e-2 if np.dtype(dtype).itemsize == 2 else 1e-4
    return Case(name, "Einsum", inputs, {"equation": equation}, opset=28, rtol=tolerance, atol=tolerance / 10, gl=gl)


CASES = [
    einsum("ij->ji", (3, 5)),
    einsum("ij", (3, 5)),
    einsum("ji", (3, 5)),
    einsum("ij->", (3, 5)),
    einsum("ij->j", (3, 5)),
    einsum("ii", (4, 4)),
    einsum("ii->i", (4, 4)),
    einsum("bii->bi", (2, 4, 4)),
    einsum("...ii->...i", (2, 3, 4, 4)),
    einsum("iji->j", (3, 5, 3)),
    einsum("i,i", (7,), (7,)),
    einsum("i,j->ij", (3,), (5,)),
    einsum("i,j->ji", (3,), (5,)),
    einsum("ij,jk->ik", (3, 5), (5, 7)),
    einsum("ij,kj->ik", (3, 5), (7, 5)),
    einsum("ij,kj->ki", (3, 5), (7, 5)),
    einsum("ij,jk", (13, 37), (37, 11)),
    einsum("bij,bjk->bik", (4, 3, 5), (4, 5, 2)),
    einsum("bhid,bhjd->bhij", (2, 3, 5, 7), (2, 3, 4, 7)),
    einsum("bhij,bhjd->bhid", (2, 3, 5, 4), (2, 3, 4, 7)),
    einsum("bnqd,bmkd->bnmqk", (2, 3, 4, 5), (2, 2, 3, 5)),
    einsum("abc,cd->abd", (2, 3, 5), (5, 7)),
    einsum("bchw,bkhw->bck", (2, 3, 4, 5), (2, 6, 4, 5)),
    einsum("...ij,...jk->...ik", (4, 3, 5), (5, 2)),
    einsum("...ij,...jk", (2, 1, 3, 5), (4, 5, 2)),
    einsum("i...,j...->ij...", (3, 5, 2), (4, 5, 2)),
    einsum("...->...", (2, 3)),
    einsum("...", ()),
    einsum(" B a , a C -> C B ", (3, 5), (5, 2)),
    einsum("Ab,bA", (3, 5), (5, 3)),
    einsum("i,ij,j->", (3,), (3, 5), (5,)),
    einsum("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    einsum("a,b,c,d->abcd", (2,), (3,), (4,), (5,)),
    einsum("a,b,c,d,e->", (2,), (3,), (2,), (3,), (2,), gl=False),
    einsum("ij,jk->ik", (0, 5), (5, 3)),
    einsum("ij,jk->ik", (3, 0), (0, 4)),
    *(einsum("ij,jk->ik", (3, 5), (5, 7), dtype=t) for t in (np.float64, np.float16, np.int32, np.int64, np.uint8)),
    einsum("bij,bjk->bik", (2, 3, 5), (2, 5, 2), dtype=ml_dtypes.bfloat16),
    einsum("i->", (9,), dtype=np.int8),
    Case(
        "overflow", "Einsum", [np.full((2, 3), 200, np.uint8), np.full((3, 5), 3, np.uint8)], {"equation": "ij,jk->ki"}
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_einsum(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 5), (4, 7)]),
        ("ij->ik", [(3, 5)]),
        ("ij->ii", [(3, 5)]),
        ("ij,jk", [(3, 5)]),
        ("i", [(3, 5)]),
        ("ijk", [(3, 5)]),
        ("i1->i", [(3, 5)]),
        ("......", [(3, 5)]),
        ("i..j", [(3, 5)]),
    ],
)
def test_bad_equations_are_refused(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [PartialTensor(pf.DataType.FLOAT32, pf.DynamicTensorShape(shape)) for shape in shapes]
    with pytest.raises(pf.InferenceError):
        declaration("Einsum").outputs_for(operands, {"equation": equation})
