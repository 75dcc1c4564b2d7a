"""Layers from outside perframe: formulas in domains of their own, beside perframe's formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import perframe as pf
from perframe.ir.vocabulary import maximum
from perframe.testing import BACKENDS, Case, Draw, check, formula_cases

DOMAIN = "tests.outside"


@pf.layers.elementwise((-3, 3), domain=DOMAIN)
def Relu(x):
    return maximum(x, -1.0)


@pf.layers.elementwise((-3, 3), (-3, 3), domain=DOMAIN)
def Scaled(a, b, *, by: float):
    return (a - b) * by


def other_module() -> Any:
    """Another formula of a name that stands in this file already."""

    @pf.layers.elementwise((-3, 3), domain=f"{DOMAIN}.other")
    def Relu(x):
        return maximum(x, -2.0)

    return Relu


OTHER = other_module()
CASES = [*formula_cases(Relu), *formula_cases(OTHER), *formula_cases(Scaled, [{"by": 0.5}])]


@pytest.mark.parametrize("one", CASES, ids=str)
def test_formulas(one: Case, backend: str, backend_context: Any) -> None:
    check(one, backend, backend_context)


@pytest.mark.parametrize("second", ["Relu", "Scaled", "Relu of ONNX"])
def test_a_formula_from_outside_fuses_with_others(second: str, backend: str, backend_context: Any) -> None:
    """Two formulas of one name may meet in a kernel."""
    draw = Draw(2)
    x, w = draw(1, 3, 5, 7, low=-3, high=3), draw(4, 3, 1, 1)
    op, _, is_onnx = second.partition(" of ")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"], domain=DOMAIN),
        helper.make_node(
            op,
            ["b", "b"][: 1 + (op == "Scaled")],
            ["y"],
            domain="" if is_onnx else DOMAIN,
            **({"by": 2.0} if op == "Scaled" else {}),
        ),
    ]
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in ("x", "y")]
    ends[0] = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
    graph = helper.make_graph(nodes, "fused", ends[:1], ends[1:], [onnx.numpy_helper.from_array(w, "w")])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    model = pf.load(helper.make_model(graph, opset_imports=imports, ir_version=9))
    made = pf.run(model, {"x": x}, backend=backend, strict=True, ctx=backend_context)["y"]
    before = np.maximum(np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]), -1)
    wanted = {"Relu": before, "Scaled": before * 0, "Relu of ONNX": np.maximum(before, 0)}[second]
    np.testing.assert_allclose(made, wanted, 1e-5, 1e-5)
    if second != "Scaled":
        assert len(model.layers) == 1, "both formulas are the convolution's epilogue"


def test_the_backends_are_those_of_a_worker() -> None:
    assert list(BACKENDS) == list(pf.BackendType)


def test_a_formula_without_a_text_says_so() -> None:
    scope: dict[str, Any] = {"pf": pf}
    exec("@pf.layers.elementwise((-1, 1), domain='tests.text')\ndef Lost(x):\n    return x + 1\n", scope)
    case = next(formula_cases(scope["Lost"]))
    with pytest.raises(pf.PerframeError, match="its text is missing; write it in a file"):
        check(case, "cpu")


def test_cases_need_ranges() -> None:
    @pf.layers.elementwise(domain=DOMAIN)
    def Unlimited(x):
        return x + 1

    with pytest.raises(pf.ModelError, match="declares no ranges to draw values from"):
        next(formula_cases(Unlimited))
