"""ONNX's own cases of control flow and sequences give the same outputs when perframe has saved them as ONNX files."""

from __future__ import annotations

import pytest

import perframe as pf
from conformance.suite import all_cases, not_passed
from exporters.compared import assert_same, run
from files.rewriting import saved

CONTROL = ("loop", "scan", "if_", "sequence", "optional", "nonmaxsuppression", "split_to", "identity", "range")
FAILING = {name for _, name in not_passed()}


@pytest.mark.parametrize(
    "name",
    [c.name for c in all_cases() if any(word in c.name for word in CONTROL) and c.name not in FAILING],
)
def test_control_flow_and_sequences_give_the_same(name: str) -> None:
    """ONNX's own cases, optimised, in onnxruntime, or in perframe where that has no kernel."""
    case = next(case for case in all_cases() if case.name == name)
    model = pf.load(case.model)
    if name in ("test_if_opt", "test_scan_sum"):
        with pytest.raises(pf.ModelError, match=r"ONNX wants the type|has no attribute batched"):
            saved(model, name="m.onnx")
        return
    data = saved(model, name="m.onnx")
    names = {value.name for value in model.inputs}
    inputs = {name: value for name, value in next(case.data_sets())[0].items() if name in names}
    try:
        want = run(case.model.SerializeToString(), inputs)
    except Exception:  # onnxruntime has no such kernel
        got, want = (list(pf.run(source, inputs).values()) for source in (data, model))
    else:
        got = run(data, inputs)
    for one, other in zip(got, want, strict=True):
        assert_same(one, other)
