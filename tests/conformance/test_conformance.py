"""ONNX's own cases on every backend. What not_passed.txt lists must fail: a case that passes is taken off it."""

from __future__ import annotations

from typing import Any

import pytest

import perframe as pf
from conformance.suite import Case, all_cases, compare, not_passed


def run(case: Case, backend: str, ctx: Any) -> None:
    model = pf.load(case.model)
    for inputs, outputs in case.data_sets():
        made = pf.run(model, inputs, backend=backend, ctx=ctx)
        for got, want in zip(made.values(), outputs, strict=True):
            compare(got, want, case.case.rtol, case.case.atol)


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_conformance(case: Case, backend: str, backend_context: Any) -> None:
    reason = not_passed().get(("all", case.name)) or not_passed().get((backend, case.name))
    if reason is None:
        run(case, backend, backend_context)
        return
    try:
        run(case, backend, backend_context)
    except Exception:  # listed, with its reason
        return
    pytest.fail(f"{case.name} passes on {backend}: take it off not_passed.txt, where it stood for: {reason}")
