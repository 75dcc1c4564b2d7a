from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import apply, graph, node, ops, prepared, random
from perframe.testing.cases import expected_by_onnxruntime

OWN = graph([node("DynamicQuantizeLinear", "x", "y s z")], {"x": [3, 5]}, outputs="y s z")
ONE = graph([node("DynamicQuantizeLinear", "x", "y s z")], {"x": [3, 5]})


@pytest.mark.parametrize("model", [OWN, ONE], ids=["all outputs", "one output"])
def test_it_fires(model: Any) -> None:
    spelled, changed = apply("spell_out", model)
    assert changed == 1 and "DynamicQuantizeLinear" not in ops(spelled)


def test_it_does_not_fire() -> None:
    assert apply("spell_out", graph([node("Relu", "x", "y")], {"x": [3, 5]}))[1] == 0
    assert ops(prepared(OWN)) == ["DynamicQuantizeLinear"]  # the CPU has a kernel


@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_the_numbers_stay(scale: float, backend: str, backend_context: Any) -> None:
    fed = {"x": random(3, 5) * np.float32(scale)}
    want = expected_by_onnxruntime(OWN, fed)
    if not scale:
        want[1] = np.float32(1 / 255)  # of nothing but zeros, as ONNX's evaluator has it
    actual = pf.run(OWN, fed, backend=backend, strict=True, ctx=backend_context)
    for value, expected in zip(actual.values(), want, strict=True):
        np.testing.assert_allclose(value, expected, 1e-6)
