"""Elements that are kept by their values: the shapes of the outputs depend on data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import perframe as pf
from perframe.testing import Case, Draw

draw = Draw(59)
_FEW = draw(4, 5, low=-1, high=1, dtype=np.int64)

CASES = [
    *(
        Case(f"{x.shape} {x.dtype}", "NonZero", [x])
        for x in (_FEW, _FEW.astype(np.float32), _FEW > 0, _FEW[0], _FEW * 0)
    ),
    Case("a number", "NonZero", [np.array(3.0, np.float32)], reference=lambda x: np.zeros((0, 1), np.int64)),
    *(
        Case(f"{attributes} {condition}", "Compress", [draw(3, 4), np.array(condition)], attributes)
        for attributes, condition in (
            ({}, [True, False, True]),
            ({"axis": 0}, [True, False, True]),
            ({"axis": 1}, [False, True]),
            ({"axis": -1}, [False, False, False, True]),
            ({"axis": 0}, [False, False]),
        )
    ),
    *(
        Case(f"{x.dtype} {attributes}", "Unique", [x], attributes, outputs=4)
        for x in (_FEW, _FEW.astype(np.float32), np.array([[2, 1], [1, 1], [2, 1]]))
        for attributes in ({}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"sorted": 1})
    ),
    Case(
        "in order of occurrence",
        "Unique",
        [np.array([2, 1, 1, 3, 4, 3], np.float32)],
        {"sorted": 0},
        outputs=4,
        reference=lambda x: [np.array([2, 1, 3, 4], np.float32), [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]],
    ),
    Case(
        "columns in order of occurrence",
        "Unique",
        [np.array([[2, 1, 2], [5, 0, 5]], np.float32)],
        {"sorted": 0, "axis": 1},
        outputs=4,
        reference=lambda x: [x[:, :2], [0, 1], [0, 1, 0], [2, 1]],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_extract(case: Case, backend: str, backend_context: Any) -> None:
    proto = case.proto()
    if callable(case.reference):
        made = case.reference(*case.inputs)
        expected = list(made) if isinstance(made, list) else [made]
    else:
        expected = list(ReferenceEvaluator(proto).run(None, case.fed))
    actual = pf.run(pf.load(proto, optimize=False), case.fed, backend=backend, ctx=backend_context)
    for value, want in zip(actual.values(), expected, strict=True):
        np.testing.assert_array_equal(value, want)
    floats = case.op == "Compress" or case.inputs[0].dtype == np.float32
    assert next(iter(actual.values())).dtype == (np.float32 if floats and case.op != "NonZero" else np.int64)
