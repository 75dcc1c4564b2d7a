"""Softmax and its logarithm, along any axis; local responses, norms, and layers composed of reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perframe.testing import Case, Draw, check

draw = Draw(29)
SHAPES = ((7,), (3, 5), (2, 3, 5), (2, 3, 5, 7), (2, 1, 3, 2, 5), (1, 211), (0, 3), (4, 1))


def _local_response(size: int, alpha: float) -> Any:
    """Of all channels at once, with a matrix; ONNX's evaluator knows as many channels as there are batches."""

    def reference(x: Any) -> Any:
        distance = np.arange(x.shape[1]) - np.arange(x.shape[1])[:, None]
        near = ((distance >= -((size - 1) // 2)) & (distance <= size // 2)).astype(x.dtype)
        squares = np.einsum("ij,bj...->bi...", near, x * x)
        return (x / (1 + alpha / size * squares) ** 0.75).astype(x.dtype)

    return reference


def _standardized(axes: Any) -> Any:
    return lambda x: (x - x.mean(tuple(axes), keepdims=True)) / x.std(tuple(axes), keepdims=True)


CASES = [
    Case(f"{shape} along {axis}", op, [draw(*shape, low=-9, high=9)], {"axis": axis}, rtol=1e-4)
    for op in ("Softmax", "LogSoftmax")
    for shape in SHAPES
    for axis in (*range(len(shape)), -1)
    if shape[axis]
]
CASES += [
    Case(f"{np.dtype(dtype)}", op, [draw(3, 5, dtype=dtype)], rtol=tolerance, atol=tolerance)
    for op in ("Softmax", "LogSoftmax")
    for dtype, tolerance in ((np.float64, 1e-6), (np.float16, 1e-2))
]
CASES += [
    Case(
        f"{shape} {attributes}",
        "LRN",
        [draw(*shape, low=-3, high=3)],
        attributes,
        rtol=1e-4,
        reference="onnxruntime",
        opset=13,
    )
    for shape in ((2, 5, 3, 4), (1, 1, 2, 2), (2, 7, 5, 3))
    for attributes in (
        {"size": 3},
        {"size": 1},
        {"size": 5, "alpha": 0.5, "beta": 0.6, "bias": 1.5},
        {"size": 9, "alpha": 2.0},
    )
]
CASES += [
    Case(
        "even size", "LRN", [draw(2, 5, 4, 3)], {"size": 4, "alpha": 0.9}, reference=_local_response(4, 0.9), rtol=1e-4
    ),
    Case(
        "volume", "LRN", [draw(2, 5, 4, 3, 2)], {"size": 3, "alpha": 0.9}, reference=_local_response(3, 0.9), rtol=1e-4
    ),
    Case(
        "float64",
        "LRN",
        [draw(2, 5, 3, 2, dtype=np.float64)],
        {"size": 3, "alpha": 0.9},
        reference=_local_response(3, 0.9),
    ),
    *(
        Case(f"{shape} {attributes}", "LpNormalization", [draw(*shape)], attributes, opset=22, reference="onnxruntime")
        for shape in ((7,), (3, 5), (2, 3, 5))
        for attributes in ({}, {"axis": 0}, {"p": 1})
    ),
    Case("of zeros", "LpNormalization", [np.zeros((2, 3), np.float32)], {}, opset=22, reference=lambda x: x),
    *(
        Case(
            f"{attributes}",
            "MeanVarianceNormalization",
            [draw(2, 3, 5, 4)],
            attributes,
            rtol=1e-4,
            atol=1e-5,
            reference=_standardized(attributes.get("axes", (0, 2, 3))),
        )
        for attributes in ({}, {"axes": (1,)}, {"axes": (2, 3)})
    ),
    *(
        Case(
            f"training {outputs}",
            "BatchNormalization",
            [draw(2, 3, 4, 5, high=5), draw(3), draw(3), draw(3), draw(3, low=0.5)],
            {"training_mode": 1, "momentum": 0.7},
            outputs=outputs,
            opset=15,
            rtol=1e-4,
            atol=1e-5,
        )
        for outputs in (1, 3)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_norm(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
