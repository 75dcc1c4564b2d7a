"""Diagonals, triangles, one-hot codes and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from perframe.testing import Case, Draw, check, ints

draw = Draw(47)

CASES = [
    Case(f"{shape} {attributes}", "EyeLike", [draw(*shape)], {"dtype": TensorProto.FLOAT} | attributes)
    for shape in ((3, 4), (5, 2), (1, 1), (0, 3))
    for attributes in ({"k": 0}, {"k": 2}, {"k": -1}, {"k": 9})
]
CASES += [
    Case(f"as {dtype}", "EyeLike", [draw(3, 3, dtype=np.int32)], {"dtype": dtype, "k": 0})
    for dtype in (TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
]
CASES += [
    Case("as float64", "EyeLike", [draw(3, 3)], {"dtype": TensorProto.DOUBLE, "k": 0}, gl=False),
    Case("as its input", "EyeLike", [draw(3, 5, dtype=np.int32)], {"k": 1}),
]
CASES += [
    Case(
        f"{shape} {dtype.__name__} {k} upper={upper}", "Trilu", [draw(*shape, high=9, dtype=dtype), k], {"upper": upper}
    )
    for upper in (0, 1)
    for shape, dtype in (((3, 5), np.float32), ((2, 2, 5, 3), np.float32), ((4, 4), np.int64), ((2, 3), bool))
    for k in (None, np.array(0), np.array(1), np.array(-2), np.array(99), np.array(-99))
]
CASES += [
    Case("of nothing", "Trilu", [draw(0, 3), np.array(1)], {}),
    Case("float16", "Trilu", [draw(3, 3, dtype=np.float16)], {}),
    Case("of infinity", "Trilu", [np.full((3, 3), np.inf, np.float32)], {}),
]


def one_hot(indices: Any, depth: Any, values: Any, axis: int = -1, **more: Any) -> Case:
    name = f"{indices.shape} {indices.dtype} to {np.asarray(values).dtype} at {axis}"
    return Case(name, "OneHot", [indices, np.asarray(depth), np.asarray(values)], {"axis": axis}, **more)


def _outside_is_off(indices: Any, depth: Any, values: Any) -> Any:
    return np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], np.float32)


_INDICES = draw(2, 3, low=-4, high=3, dtype=np.int64)
CASES += [
    *(one_hot(_INDICES, 4, np.array([0, 1], np.float32), axis) for axis in (0, 1, 2, -1, -2)),
    one_hot(_INDICES.astype(np.float32), 4, np.array([-1, 5], np.float32)),
    one_hot(_INDICES, ints(4), np.array([-1, 5], np.float32), reference="onnxruntime", opset=11),
    one_hot(_INDICES, 4, np.array([2, 7], np.int32)),
    one_hot(_INDICES.astype(np.int32), np.float32(4), np.array([2, 7], np.int64)),
    one_hot(_INDICES, 4, np.array([False, True]), reference=lambda i, d, v: i[..., None] % 4 == np.arange(4)),
    one_hot(np.array(2), 4, np.array([0, 1], np.float32)),
    one_hot(_INDICES, 4, np.array([0, 1], np.float64)),
    one_hot(np.array([0, 7, -9]), 4, np.array([0, 1], np.float32), reference=_outside_is_off),
]
CASES += [
    Case(f"{size} {attributes}", op, [np.array(size)], attributes, opset=17, rtol=1e-5, atol=1e-6)
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow")
    for size in (10, 7)
    for attributes in ({}, {"periodic": 0}, {"output_datatype": TensorProto.DOUBLE})
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_make(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
