"""Formulas that ONNX lacks are written in its operators, and onnxruntime computes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest

import perframe as pf
from files.rewriting import saved
from perframe.ir.declaration import REGISTRY, Declaration, registry
from perframe.ir.vocabulary import abs, clamp, exp, is_nan, log1p, tanh, where
from perframe.layers import elementwise

HardSwish = registry()["HardSwish"]


@pytest.fixture
def declared() -> Iterator[dict[str, Declaration]]:
    """Layers without a domain, as perframe's own are, for one test."""
    before = dict(REGISTRY)

    @elementwise((-9, 9))
    def TwiceTanh(x):  # type: ignore[no-untyped-def]
        return 2 * tanh(x)

    @elementwise((-9, 9), (-2, 2))
    def Bent(x, y, *, alpha=0.5, limit):  # type: ignore[no-untyped-def]
        bent = where(x > 0, HardSwish(x), -alpha * abs(y))
        inside = clamp(bent, -y, limit) - exp(0 - x) / (1 + exp(-x))
        return where((bent == y) | ~is_nan(x), inside, 1) + where((x != y) & (x <= 2), 0, 3)

    @elementwise((-9, 9))
    def Itself(x):  # type: ignore[no-untyped-def]
        return x

    @elementwise((-9, 9), result=pf.DataType.BOOL)
    def IsSmall(x):  # type: ignore[no-untyped-def]
        return abs(x) < 1

    @elementwise((0, 9))
    def Logarithm(x):  # type: ignore[no-untyped-def]
        return log1p(x)

    yield {name: entry for name, entry in REGISTRY.items() if name not in before}
    for name in set(REGISTRY) - set(before):
        del REGISTRY[name]


def model_of(declared: dict[str, Declaration], name: str, dtype: str = "float32", **attributes: Any) -> pf.Model:
    graph = pf.FunctionalGraph()
    x, y = graph.add_input(dtype, (2, "n"), "x"), graph.add_input(dtype, ("n",), "y")
    entry = declared[name]
    return graph.compile(out=pf.functional.apply(entry, *(x, y)[: len(entry.inputs)], **attributes))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "attributes"), [("TwiceTanh", {}), ("Bent", {"limit": 1.5}), ("Itself", {}), ("IsSmall", {})]
)
def test_onnxruntime_computes_a_formula(
    name: str, attributes: dict[str, Any], dtype: str, declared: dict[str, Declaration]
) -> None:
    model = model_of(declared, name, dtype, **attributes)
    x = np.append(np.linspace(-4, 4, 19), np.nan).reshape(2, 10).astype(dtype)
    given = {"x": x, "y": np.linspace(-2, 2, 10).astype(dtype)}
    data = saved(model, name="m.onnx")
    (right,) = pf.run(model, given).values()
    (made,) = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, given)
    assert made.dtype == right.dtype
    np.testing.assert_allclose(made, right, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pf.run(data, given)["out"], right, rtol=1e-5, atol=1e-6)


def test_a_word_without_an_operator_is_named(declared: dict[str, Declaration]) -> None:
    with pytest.raises(pf.ModelError, match=r"none for log1p\(\) of its formula"):
        saved(model_of(declared, "Logarithm"), name="m.onnx")


def test_integers_are_refused(declared: dict[str, Declaration]) -> None:
    with pytest.raises(pf.ModelError, match="only formulas of floats"):
        saved(model_of(declared, "TwiceTanh", "int32"), name="m.onnx")
