"""Operators of quantized numbers beside LiteRT's own interpreter.

It rounds in its own way, so a number may be off by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import perframe as pf

pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert, the peer of these tests")
pytest.importorskip("tflite", reason="needs the extra litert")

from importers.litert_files import Array, File, interpreted, scales


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


@dataclass
class Case:
    """Inputs are shapes of quantized tensors, or constants. `given` and `to` are scales and zero points."""

    code: str
    inputs: Sequence[Any]
    to: tuple[float, int] = (0.05, -3)
    kind: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    given: Sequence[tuple[float, int]] = ((0.05, -3), (0.02, 5))
    outputs: int = 1
    dtype: str = "int8"
    versions: int = 2
    off: int = 1

    def __str__(self) -> str:
        return f"{self.code}-{self.dtype}-{self.to}"


SHAPE, SAME = (2, 5, 7, 3), (0.05, -3)
POOL = {"filterHeight": 2, "filterWidth": 3, "strideH": 2, "strideW": 1, "padding": 1}
PADS = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)
CASES = [
    Case("ADD", [SHAPE, SHAPE], (0.06, 4), "AddOptions"),
    Case("SUB", [SHAPE, (3,)], (0.06, 4), "SubOptions"),
    Case("MUL", [SHAPE, SHAPE], (0.1, 4), "MulOptions", {"fusedActivationFunction": 1}),
    Case("MAXIMUM", [SHAPE, SHAPE], given=(SAME, SAME)),
    Case("SQUARED_DIFFERENCE", [SHAPE, SHAPE], (0.3, -128), versions=2),
    Case("RELU", [SHAPE], (0.025, -128)),
    Case("RELU6", [SHAPE], (6 / 255, -128)),
    Case("LEAKY_RELU", [SHAPE], (0.04, 0), "LeakyReluOptions", {"alpha": 0.2}),
    Case("PRELU", [SHAPE, (1, 1, 3)], (0.05, 3), versions=1),
    Case("HARD_SWISH", [SHAPE], (0.03, -100), versions=1),
    Case("LOGISTIC", [SHAPE], (1 / 256, -128)),
    Case("TANH", [SHAPE], (1 / 128, 0)),
    Case("EXP", [SHAPE], (0.5, -128)),
    Case("SOFTMAX", [(4, 7)], (1 / 256, -128), "SoftmaxOptions", {"beta": 1.0}),
    Case("LOG_SOFTMAX", [(4, 7)], (16 / 256, 127)),
    Case("L2_NORMALIZATION", [(4, 7)], (1 / 128, 0), "L2NormOptions", given=((0.05, 0),)),
    Case("MEAN", [SHAPE, ints(1, 2)], (0.02, -3), "ReducerOptions", {"keepDims": True}),
    Case("MEAN", [SHAPE, ints(1, 2)], SAME, "ReducerOptions", {"keepDims": False}),
    Case("SUM", [SHAPE, ints(1)], (0.2, -3), "ReducerOptions", {"keepDims": False}),
    Case("REDUCE_MAX", [SHAPE, ints(1)], SAME, "ReducerOptions", {"keepDims": False}),
    Case("AVERAGE_POOL_2D", [SHAPE], SAME, "Pool2DOptions", POOL),
    Case("MAX_POOL_2D", [SHAPE], SAME, "Pool2DOptions", POOL),
    Case("MAX_POOL_2D", [SHAPE], SAME, "Pool2DOptions", {**POOL, "fusedActivationFunction": 1}),
    Case("RESIZE_BILINEAR", [SHAPE, ints(8, 9)], SAME, "ResizeBilinearOptions", {"halfPixelCenters": True}),
    Case("RESIZE_NEAREST_NEIGHBOR", [SHAPE, ints(8, 9)], SAME, "ResizeNearestNeighborOptions"),
    Case("CONCATENATION", [SHAPE, SHAPE], SAME, "ConcatenationOptions", {"axis": 3}, given=(SAME, SAME)),
    Case(
        "CONCATENATION",
        [SHAPE, SHAPE],
        (0.06, 1),
        "ConcatenationOptions",
        {"axis": 1},
        dtype="uint8",
        given=((0.05, 120), (0.02, 130)),
    ),
    Case("RESHAPE", [SHAPE, ints(2, 105)], SAME, "ReshapeOptions", versions=1),
    Case("TRANSPOSE", [SHAPE, ints(0, 3, 1, 2)], SAME),
    Case("PAD", [SHAPE, PADS], SAME),
    Case("SLICE", [SHAPE, ints(0, 1, 0, 0), ints(1, 2, -1, 3)], SAME),
    Case("STRIDED_SLICE", [SHAPE, ints(0, 1, 0, 0), ints(2, 4, 7, 3), ints(1, 2, 3, 1)], SAME, "StridedSliceOptions"),
    Case("SPACE_TO_BATCH_ND", [(2, 6, 6, 3), ints(2, 3), np.array([[1, 1], [2, 1]], np.int32)], SAME),
    Case("GATHER", [SHAPE, ints(2, 0)], SAME, "GatherOptions", {"axis": 1}),
    Case("QUANTIZE", [SHAPE], (0.11, 9)),
    Case(
        "TRANSPOSE_CONV",
        [ints(2, 10, 14, 4), np.zeros((4, 2, 2, 3)), SHAPE],
        (2.0, 2),
        "TransposeConvOptions",
        {"strideH": 2, "strideW": 2, "padding": 1},
    ),
    Case("BATCH_MATMUL", [(2, 5, 7), (2, 7, 4)], (0.3, 2), "BatchMatMulOptions"),
]


def built(case: Case) -> tuple[bytes, list[Array]]:
    file = File(versions={case.code: case.versions})
    graph, fed, given, real = file.graph, [], [], 0
    random = np.random.default_rng(3)
    for index, value in enumerate(case.inputs):
        if isinstance(value, tuple):
            fed.append(random.integers(0, 255, value).astype(np.uint8).view(case.dtype))
            scale = case.given[min(real, len(case.given) - 1)]
            given.append(graph.input(f"x{index}", value, case.dtype, scales(*scale)))
            real += 1
        elif value.dtype == np.float64:  # weights, with a scale for each output
            weights = random.integers(-127, 127, value.shape).astype(np.int8)
            given.append(graph.constant(weights, scales(np.linspace(0.01, 0.03, value.shape[0]), 0, 0)))
        else:
            given.append(graph.constant(value))
    made = graph.op(case.code, given, case.options, (case.dtype,), scales(*case.to), kind=case.kind)
    return file.data(made), fed


@pytest.mark.parametrize("case", CASES, ids=str)
def test_quantized_operator(case: Case) -> None:
    data, fed = built(case)
    (want,) = interpreted(data, fed)
    model = pf.load(data)
    (made,) = pf.run(model, {v.name: x for v, x in zip(model.inputs, fed, strict=True)}).values()
    assert (made.dtype, made.shape) == (want.dtype, want.shape)
    assert np.abs(made.astype(int) - want.astype(int)).max() <= case.off
    assert np.ptp(want.astype(int)) > 5
