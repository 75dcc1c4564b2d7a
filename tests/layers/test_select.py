"""The largest and the first few along an axis: ties, NaN, the last of equal ones, rows of one part and of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import perframe as pf
from perframe.testing import Case, Draw, check, ints

draw = Draw(41)


def ties(*shape: int, dtype: Any = np.float32) -> Any:
    """Few different numbers, so that many are equal."""
    return draw(*shape, low=-2, high=2, dtype=np.int64).astype(dtype)


def some_nan(*shape: int) -> Any:
    x = draw(*shape)
    x.reshape(-1)[:: max(2, x.size // 5)] = np.nan
    return x


def first(op: str, last: bool) -> Any:
    """As NumPy finds them along the last axis: NaN first."""

    def reference(x: Any) -> Any:
        rows = x[..., ::-1] if last else x
        found = (np.argmax if op == "ArgMax" else np.argmin)(rows, axis=-1, keepdims=True)
        return x.shape[-1] - 1 - found if last else found

    return reference


CASES = [
    Case(f"{shape} along {axis} {options}", op, [ties(*shape)], {"axis": axis} | options)
    for op in ("ArgMax", "ArgMin")
    for shape, axis in (
        ((7,), 0),
        ((3, 5), 0),
        ((3, 5), 1),
        ((2, 3, 5), -2),
        ((2, 3, 1, 5), 2),
        ((0, 3), 1),
        ((2, 2047), 1),
    )
    for options in ({}, {"keepdims": 0}, {"select_last_index": 1})
]
CASES += [
    Case(f"{name} last={last}", op, [x], {"axis": -1, "select_last_index": int(last)}, reference=first(op, last))
    for op in ("ArgMax", "ArgMin")
    for last in (False, True)
    for name, x in (
        ("NaN", some_nan(3, 11)),
        ("all NaN", np.full((2, 3), np.nan, np.float32)),
        ("infinite", np.array([[np.inf, 1, np.inf], [-np.inf, -np.inf, 0]], np.float32)),
        ("int32", ties(5, 9, dtype=np.int32)),
        ("int64", ties(5, 9, dtype=np.int64)),
        ("uint8", np.abs(ties(5, 9)).astype(np.uint8)),
        ("float64", ties(5, 9, dtype=np.float64)),
        ("float16", ties(5, 9, dtype=np.float16)),
    )
]
CASES += [
    Case(f"{shape} along {axis}", "Hardmax", [ties(*shape)], {"axis": axis})
    for shape, axis in (((7,), 0), ((3, 5), 0), ((2, 3, 5), 1), ((2, 3, 5), -1), ((3, 1100), 1), ((3, 1), 0))
]
CASES += [
    Case(
        f"opset {opset} axis {axis}",
        "Hardmax",
        [ties(2, 3, 5)],
        {"axis": axis} if axis else {},
        opset=opset,
        reference="onnxruntime",
    )
    for opset, axis in ((11, 0), (11, 2), (12, None))
]
CASES += [
    Case(f"{x.shape} {x.dtype} {k} along {axis} {options}", "TopK", [x, ints(k)], {"axis": axis} | options, outputs=2)
    for options in ({}, {"largest": 0})
    for x, axis, k in (
        (ties(7), 0, 3),
        (ties(7), 0, 7),
        (ties(3, 5), 0, 2),
        (ties(2, 3, 5), -2, 3),
        (ties(2, 3, 5, 2), 2, 1),
        (ties(3, 1), 1, 1),
        (draw(2, 1025), 1, 5),
        (ties(2, 1500, 2), 1, 1500),
        (ties(3, 1217, 2), 1, 70),
        (ties(1, 4097, dtype=np.int32), 1, 300),
        (ties(2, 1100), 0, 2),
        (ties(5, 9, dtype=np.int32), 1, 4),
        (ties(5, 9, dtype=np.int64), 0, 4),
        (np.abs(ties(5, 9)).astype(np.uint64), 1, 4),
        (ties(5, 9, dtype=np.float64), 1, 4),
    )
]
CASES += [
    Case("none", "TopK", [ties(3, 5), ints(0)], {}, outputs=2),
    Case("opset 1", "TopK", [ties(3, 5)], {"k": 2}, outputs=2, opset=9, reference="onnxruntime", constants=[]),
    Case("opset 10", "TopK", [draw(3, 5), ints(2)], {"axis": 0}, outputs=2, opset=10, reference="onnxruntime"),
    Case(
        "NaN",
        "TopK",
        [np.array([[1, np.nan, 3, np.nan, 2]], np.float32), ints(3)],
        outputs=2,
        reference=lambda x, k: [np.array([[np.nan, np.nan, 3]], np.float32), np.array([[1, 3, 2]])],
    ),
    Case(
        "NaN in a long row",
        "TopK",
        [np.where(np.arange(2000) % 700 == 699, np.nan, -np.arange(2000)).astype(np.float32), ints(4)],
        {"axis": 0},
        outputs=2,
        reference=lambda x, k: [np.array([np.nan, np.nan, 0, -1], np.float32), np.array([699, 1399, 0, 1])],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_select(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize(
    ("op", "shape", "attributes", "message"),
    [
        ("ArgMax", (3, 0), {"axis": 1}, "no elements"),
        ("ArgMax", (3, 2), {"axis": 2}, "axis 2"),
        ("TopK", (3, 2), {"axis": 1}, "no 5 elements"),
    ],
)
def test_what_cannot_be_selected_is_an_error(
    op: str, shape: tuple[int, ...], attributes: dict[str, Any], message: str
) -> None:
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    k = [helper.make_tensor("k", onnx.TensorProto.INT64, (1,), [5])] if op == "TopK" else []
    outputs = ["y", "i"] if op == "TopK" else ["y"]
    node = helper.make_node(op, ["x", "k"][: 1 + len(k)], outputs, **attributes)
    graph = helper.make_graph([node], "g", [info], [onnx.ValueInfoProto(name="y")], k)
    with pytest.raises(pf.InferenceError, match=message):
        pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10))
