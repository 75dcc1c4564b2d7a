"""StableHLO operators in LiteRT files, beside NumPy: the interpreter does not run most of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import perframe as pf

pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, which writes the files")
pytest.importorskip("tflite", reason="needs the extra litert")

from importers.litert_files import Array, File

A = np.random.default_rng(1).uniform(-3, 3, (2, 3, 5)).astype(np.float32)
B = np.random.default_rng(2).uniform(0.5, 3, (2, 3, 5)).astype(np.float32)
N = np.random.default_rng(3).integers(-99, 99, (4, 3)).astype(np.int32)
M = np.random.default_rng(4).integers(1, 5, (4, 3)).astype(np.int32)
P = np.random.default_rng(5).random((4, 3)) < 0.5
DIRECTIONS = (np.equal, np.not_equal, np.greater_equal, np.greater, np.less_equal, np.less)


@dataclass
class Case:
    name: str
    inputs: Sequence[Array]
    expected: Callable[..., Any]
    kind: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    constants: int = 0  # the last so many inputs are constants

    def __str__(self) -> str:
        return f"{self.name}-{self.options}"


def moved(a: Array, start: Array, other: Array) -> Array:
    return np.array([*a[:start, 0], *other[:, 0], *a[start + 2 :, 0]]).reshape(-1, 1)


CASES = [
    Case("ADD", [A, B], np.add),
    Case("SUBTRACT", [A, B], np.subtract),
    Case("MULTIPLY", [A, B], np.multiply),
    Case("DIVIDE", [A, B], np.divide),
    Case("MAXIMUM", [A, B], np.maximum),
    Case("MINIMUM", [A, B], np.minimum),
    Case("POWER", [B, A], np.power),
    Case("REMAINDER", [N, M], np.fmod),
    Case("ABS", [A], np.abs),
    Case("NEGATE", [A], np.negative),
    Case("COSINE", [A], np.cos),
    Case("EXPONENTIAL", [A], np.exp),
    Case("FLOOR", [A], np.floor),
    Case("LOG", [B], np.log),
    Case("LOGISTIC", [A], lambda x: 1 / (1 + np.exp(-x))),
    Case("RSQRT", [B], lambda x: 1 / np.sqrt(x)),
    Case("TANH", [A], np.tanh),
    Case("CBRT", [A], np.cbrt),
    Case("AND", [P, ~P], np.logical_and),
    Case("AND", [N, M], np.bitwise_and),
    Case("OR", [P, ~P], np.logical_or),
    Case("OR", [N, M], np.bitwise_or),
    Case("SHIFT_LEFT", [M, M], np.left_shift, "StablehloShiftLeftOptions"),
    Case("SELECT", [P, N, M], np.where),
    Case("CLAMP", [np.float32(-1), A, np.float32(2)], lambda low, x, high: np.clip(x, low, high)),
    Case("CONVERT", [N], lambda x: x.astype(np.float32)),
    *(
        Case("COMPARE", [N, N[::-1]], function, "StablehloCompareOptions", {"comparisonDirection": number})
        for number, function in enumerate(DIRECTIONS)
    ),
    Case("RESHAPE", [A], lambda x: x.reshape(6, 5)),
    Case("TRANSPOSE", [A], lambda x: x.transpose(2, 0, 1), "StablehloTransposeOptions", {"permutation": [2, 0, 1]}),
    Case("CONCATENATE", [N, M], lambda *x: np.concatenate(x, 1), "StablehloConcatenateOptions", {"dimension": 1}),
    Case(
        "SLICE",
        [A],
        lambda x: x[1:2, 0:3:2, 1:5:3],
        "StablehloSliceOptions",
        {"startIndices": [1, 0, 1], "limitIndices": [2, 3, 5], "strides": [1, 2, 3]},
    ),
    Case(
        "BROADCAST_IN_DIM",
        [N],
        lambda x: np.broadcast_to(x[:, None], (4, 2, 3)),
        "StablehloBroadcastInDimOptions",
        {"broadcastDimensions": [0, 2]},
    ),
    Case(
        "PAD",
        [N, np.int32(7)],
        lambda x, v: np.pad(x, [(1, 0), (2, 3)], constant_values=v),
        "StablehloPadOptions",
        {"edgePaddingLow": [1, 2], "edgePaddingHigh": [0, 3], "interiorPadding": [0, 0]},
        1,
    ),
    Case(
        "DYNAMIC_SLICE",
        [N, np.int32(9), np.int32(1)],
        lambda x, i, j: x[2:4, 1:3],
        "StablehloDynamicSliceOptions",
        {"sliceSizes": [2, 2]},
    ),
    Case("DYNAMIC_UPDATE_SLICE", [N[:, :1], M[:2, :1], np.int32(1), np.int32(0)], lambda x, y, i, j: moved(x, i, y)),
]


def run(case: Case) -> tuple[Array, Array]:
    file, given, feed = File(), [], {}
    for index, value in enumerate(case.inputs):
        if index >= len(case.inputs) - case.constants:
            given.append(file.graph.constant(value))
        else:
            given.append(file.graph.input(f"x{index}", np.shape(value), np.asarray(value).dtype))
            feed[f"x{index}"] = np.asarray(value)
    want = np.asarray(case.expected(*case.inputs))
    made = file.graph.op(
        f"STABLEHLO_{case.name}", given, case.options, (want.dtype,), kind=case.kind, shapes=[want.shape]
    )
    (found,) = pf.run(file.data(made), feed).values()
    return found, want


@pytest.mark.parametrize("case", CASES, ids=str)
def test_stablehlo(case: Case) -> None:
    made, want = run(case)
    assert made.dtype == want.dtype
    np.testing.assert_allclose(made, want, 1e-5, 1e-5)


def test_counting_along_an_axis() -> None:
    file = File()
    options = {"iotaDimension": 1}
    made = file.graph.op("STABLEHLO_IOTA", [], options, kind="StablehloIotaOptions", shapes=[(2, 3)])
    np.testing.assert_array_equal(next(iter(pf.run(file.data(made), {}).values())), np.float32([[0, 1, 2]] * 2))


def test_a_composite_is_its_decomposition() -> None:
    file = File()
    inner = file.subgraph()
    inner.outputs = [
        inner.op("SQUARE", [inner.op("ABS", [inner.input("x", (2, 3))], shapes=[(2, 3)])], shapes=[(2, 3)])
    ]
    x = file.graph.input("x", (2, 3))
    options = {"name": "odd.one", "decompositionSubgraphIndex": 1}
    made = file.graph.op("STABLEHLO_COMPOSITE", [x], options, kind="StableHLOCompositeOptions", shapes=[(2, 3)])
    fed = np.float32([[1, -2, 3], [4, 5, -6]])
    np.testing.assert_array_equal(next(iter(pf.run(file.data(made), {"x": fed}).values())), fed**2)
