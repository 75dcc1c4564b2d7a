"""Reductions over every set of axes, with and without keepdims, of empty tensors and scalars."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx.defs
import pytest

from perframe.ir.declaration import registry
from perframe.testing import Case, Draw, check, ints
from perframe.testing.cases import OPSET

draw = Draw(13)

REDUCTIONS = sorted(name for name, entry in registry().items() if entry.family == "reduce" and "Global" not in name)
# logarithms need positive numbers; products stay near 1
DOMAINS = {"ReduceLogSum": (0.1, 3), "ReduceProd": (0.7, 1.4)}


def reduce(op: str, shape: tuple[int, ...], axes: Any, dtype: Any = np.float32, **attributes: Any) -> Case:
    low, high = DOMAINS.get(op, (-3, 3))
    name = f"{shape} over {axes} {np.dtype(dtype)} {attributes or ''}".strip()
    x = draw(*shape, low=low, high=high, dtype=dtype)
    given = [x] if axes is None else [x, ints(*axes)]
    tolerance = 5e-3 if dtype == np.float16 else 1e-5
    return Case(name, op, given, attributes, reference=reference(op, dtype, shape), rtol=tolerance, atol=tolerance)


def reference(op: str, dtype: Any, shape: tuple[int, ...]) -> Any:
    """ONNX's evaluator widens int32 where the specification says that the dtype stays."""
    if op == "ReduceSumSquare" and dtype == np.int32:
        return lambda x, axes: (x * x).sum(tuple(axes), dtype=x.dtype, keepdims=True)
    if op == "ReduceLogSumExp" and shape == ():  # it cannot do this one
        return lambda x: x
    return "onnx"


def cases(op: str) -> list[Case]:
    subsets = [axes for count in range(1, 5) for axes in itertools.combinations(range(4), count)]
    found = [reduce(op, (2, 3, 5, 4), axes, keepdims=len(axes) % 2) for axes in subsets]
    found += [
        reduce(op, (2, 3, 5, 4), None, keepdims=1),
        reduce(op, (2, 3, 5, 4), None, keepdims=0),
        reduce(op, (2, 3, 5, 4), [-1, 1], keepdims=0),
        reduce(op, (2, 3), [], noop_with_empty_axes=0),
        reduce(op, (2, 3, 1, 5, 2), [3, 0], keepdims=1),
        reduce(op, (7,), [0], keepdims=0),
        reduce(op, (1,), [0], keepdims=1),
        reduce(op, (), None, keepdims=0),
        reduce(op, (3, 0), [0], keepdims=1),
        reduce(op, (1, 211), [1]),
        reduce(op, (211, 2), [0], keepdims=0),
    ]
    if op not in ("ReduceMean",):
        found.append(reduce(op, (3, 0), [1], keepdims=0))
    schema = onnx.defs.get_schema(op, OPSET)
    for dtype in (np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8, bool):
        kind = {"float64": "double"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
        whole = np.dtype(dtype).kind in "iu" and op in (
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceMean",
        )  # rounding is not specified
        if f"tensor({kind})" in schema.inputs[0].types and not whole:
            found.append(reduce(op, (3, 5), [1], dtype))
    return found


EMPTY_AXES = [
    Case("noop", op, [draw(2, 3, low=0.5, high=2), ints()], {"noop_with_empty_axes": 1}, reference=want)
    for op, want in {
        "ReduceSum": lambda x, _: x,
        "ReduceMean": lambda x, _: x,
        "ReduceMax": lambda x, _: x,
        "ReduceProd": lambda x, _: x,
    }.items()
]
CASES = [case for op in REDUCTIONS for case in cases(op)] + EMPTY_AXES


def over_planes(reduction: Any) -> Any:
    """ONNX's evaluator knows global pooling of pictures only."""
    return lambda x: reduction(x, axis=tuple(range(2, x.ndim)), keepdims=True)


GLOBAL = [
    Case(f"{shape}", op, [draw(*shape)], reference=over_planes(want))
    for op, want in {"GlobalAveragePool": np.mean, "GlobalMaxPool": np.max}.items()
    for shape in ((2, 3, 7), (2, 3, 5, 7), (1, 5, 1, 1), (1, 2, 3, 4, 5), (0, 3, 2, 2))
]
LARGE = np.array([[1000, 1000.5], [-1000, -1001], [-np.inf, 1], [-np.inf, -np.inf], [np.inf, 1]], np.float32)
GLOBAL += [
    Case(
        "of large numbers",
        "ReduceLogSumExp",
        [LARGE, ints(1)],
        {"keepdims": 0},
        reference=lambda x, _: np.logaddexp(x[:, 0], x[:, 1]),
    ),
    Case("in parts", "ReduceLogSumExp", [draw(2, 3001), ints(1)], rtol=1e-5),
    Case("of nothing", "ReduceMax", [np.zeros((2, 0), bool), ints(1)], reference=lambda *_: np.zeros((2, 1), bool)),
    Case("of nothing", "ReduceMin", [np.zeros((2, 0), bool), ints(1)], reference=lambda *_: np.ones((2, 1), bool)),
]
AT_RUN_TIME = [Case("axes given at run time", op, [draw(3, 5, 2), ints(-1, 0)], constants=()) for op in REDUCTIONS[:3]]


@pytest.mark.parametrize("case", CASES + GLOBAL + AT_RUN_TIME, ids=str)
def test_reduce(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
