"""Normalisations of com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layers.test_contrib import check, model
from perframe.testing import Draw
from perframe.testing.cases import Array, expected_by_onnxruntime

draw = Draw(71)
X, SKIP, GAMMA, BETA, BIAS = draw(2, 3, 8), draw(2, 3, 8), draw(8), draw(8), draw(8)
CASES: list[tuple[str, list[Array | None], dict[str, Any], Any]] = [
    ("SkipLayerNormalization", [X, SKIP, GAMMA], {}, 1),
    ("SkipLayerNormalization", [X, SKIP, GAMMA, BETA, BIAS], {"epsilon": 1e-3}, ["y", "", "", "sum"]),
    ("SkipLayerNormalization", [X, SKIP[:1], GAMMA, None, BIAS], {}, 1),
    ("SkipLayerNormalization", [X, SKIP[0], GAMMA, BETA], {}, 1),
    ("SkipLayerNormalization", [X[0], SKIP[0], GAMMA, BETA], {}, 1),
    ("SkipSimplifiedLayerNormalization", [X, SKIP, GAMMA], {"epsilon": 1e-5}, 1),
    ("SkipSimplifiedLayerNormalization", [X, SKIP, GAMMA, BIAS], {}, ["y", "", "", "sum"]),
    ("SkipLayerNormalization", [v.astype(np.float16) for v in (X, SKIP, GAMMA, BETA)], {}, 1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}{len(case[1])}{case[3]}")
def test_skip(case: Any, backend: str, backend_context: Any) -> None:
    op, inputs, attributes, outputs = case
    native = inputs[0].dtype == np.float32
    check(backend, backend_context, op, inputs, attributes, outputs=outputs, native=native)


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_simplified(domain: str, backend: str, backend_context: Any) -> None:
    """onnxruntime keeps it in ai.onnx."""
    given, attributes = [X, GAMMA], {"axis": -1, "epsilon": 1e-4}
    proto = model("SimplifiedLayerNormalization", given, attributes, domain="", outputs=["y0", "y1"])
    wanted = expected_by_onnxruntime(proto, {"x0": X, "x1": GAMMA})
    for count in (1, 2):
        names = ["y0", "y1"][:count]
        op = "SimplifiedLayerNormalization"
        check(backend, backend_context, op, given, attributes, outputs=names, wanted=wanted[:count], domain=domain)


def test_layer_normalization(backend: str, backend_context: Any) -> None:
    proto = model("LayerNormalization", [X, GAMMA, BETA], {}, domain="")
    wanted = expected_by_onnxruntime(proto, {"x0": X, "x1": GAMMA, "x2": BETA})
    check(backend, backend_context, "LayerNormalization", [X, GAMMA, BETA], wanted=wanted)


IDS = np.array([[3, 1, 4], [1, 5, 0]], np.int32)
KINDS, MASK = np.array([[0, 0, 1], [0, 1, 1]], np.int32), np.array([[1, 1, 0], [1, 1, 1]], np.int32)
PLACES = np.array([[2, 0, 1], [1, 1, 0]], np.int32)
WORDS, POSITIONS, SEGMENTS = draw(7, 8), draw(5, 8), draw(2, 8)


@pytest.mark.parametrize("outputs", [["y", "mask"], ["y", "mask", "sum"], ["y", "", "sum"]], ids=len)
@pytest.mark.parametrize("segments", [False, True], ids=["", "segments"])
@pytest.mark.parametrize("last", [[], [MASK], [None, PLACES], [MASK, PLACES]], ids=len)
def test_embed(outputs: Any, segments: bool, last: Any, backend: str, backend_context: Any) -> None:
    kinds, table = (KINDS, SEGMENTS) if segments else (None, None)
    inputs = [IDS, kinds, WORDS, POSITIONS, table, GAMMA, BETA, *last]
    if "" in outputs:  # onnxruntime wants it
        proto = model("EmbedLayerNormalization", inputs, {}, outputs=["y", "mask", "sum"])
        feeds = {f"x{i}": v for i, v in enumerate(inputs) if v is not None}
        made = expected_by_onnxruntime(proto, feeds)
        wanted = [made[0], made[2]]
    else:
        wanted = None
    check(backend, backend_context, "EmbedLayerNormalization", inputs, outputs=outputs, wanted=wanted, native=True)


@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("op", ["GroupNorm", "SkipGroupNorm"])
def test_group_norm(op: str, activation: int, backend: str, backend_context: Any) -> None:
    x, skip, bias = draw(2, 3, 4, 8), draw(2, 8), draw(8)
    total = x + skip[:, None, None] + bias if op == "SkipGroupNorm" else x
    parts = total.reshape(2, 12, 2, 4)
    mean, variance = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    y = ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * GAMMA + BETA
    y = y / (1 + np.exp(-y)) if activation else y
    skips = [skip, bias] if op == "SkipGroupNorm" else []
    wanted = [y, total] if skips else [y]
    attributes = {"groups": 2, "activation": activation, "epsilon": 1e-5}
    inputs = [x, GAMMA, BETA, *skips]
    check(backend, backend_context, op, inputs, attributes, outputs=len(wanted), wanted=wanted, tolerance=1e-4)
